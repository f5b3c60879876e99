"""The frozen plan of one request."""

from outlast.errors import model_not_found
from outlast.model.plan import Plan
from outlast.routing.resolve import Index


def plan(name: str, index: Index) -> Plan:
    """Freeze the order for one request.

    Raises:
        GatewayError: 404 `model_not_found`, when nothing answers to the name.
    """
    target = index.find(name)
    if target is None:
        raise model_not_found(name)
    return Plan(
        asked=name,
        label=target.label,
        strategy=target.strategy,
        candidates=target.candidates,
        skipped=target.skipped,
        policy=target.policy,
    )
