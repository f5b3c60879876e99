"""Which names providers, deployments and pools may carry, and which names would mean two things.

Owns reserved words and collisions. A deployment may be called like the model that it alone
serves, or like its own `provider/upstream_model`: both names mean the same one candidate.
"""

from collections.abc import Mapping, Sequence

from outlast.config.report import Report, join
from outlast.config.values import has_control
from outlast.model.ids import DeploymentName
from outlast.model.topology import Deployment

NAME_LENGTH_MAX = 200
RESERVED = frozenset(
    "openai responses anthropic gemini cohere bedrock api v1 v1beta v2 model hotel direct".split()  # noqa: SIM905
)
_PREFIXES = ("hotel/", "direct/")


def check_name(name: str, path: str, report: Report, *, routable: bool) -> bool:
    """May something carry this name? `routable`: callers can ask for it as a model."""
    problem = None
    if not name.strip() or name != name.strip():
        problem = "a name must not be empty or begin or end with a space"
    elif has_control(name):
        problem = "a name must not hold control characters"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"a name must be at most {NAME_LENGTH_MAX} characters"
    elif routable and (name in RESERVED or name.startswith(_PREFIXES)):
        problem = "the name is reserved; choose another"
    elif not routable and "/" in name:
        problem = "a provider's name must not hold a slash: it is what precedes one in a model name"
    if problem is not None:
        report.problem(path, problem)
    return problem is None


def check_collisions(
    deployments: Mapping[DeploymentName, Deployment], pools: Sequence[str], report: Report
) -> None:
    """Refuse names that would mean two things."""
    serving: dict[str, list[Deployment]] = {}
    direct: dict[str, list[Deployment]] = {}
    for deployment in deployments.values():
        serving.setdefault(deployment.serves, []).append(deployment)
        name = f"{deployment.provider}/{deployment.upstream_model}"
        direct.setdefault(name, []).append(deployment)
    for name, same in direct.items():
        if len(same) > 1:
            path = join("deployments", same[1].name)
            report.warn(path, f"{name!a} means deployment {same[0].name!a}, not this one")
    for pool in pools:
        path = join("pools", pool)
        if pool in deployments:
            report.problem(path, "a deployment has the same name; rename one of them")
        elif pool in serving:
            report.problem(path, "a deployment serves a model of the same name; rename the pool")
        elif pool in direct:
            report.problem(path, "a provider and model have the same name; rename the pool")
    for own in deployments.values():
        path = join("deployments", own.name)
        if serving.get(own.name, [own]) != [own]:
            report.problem(path, "other deployments serve a model of the same name; rename it")
        elif direct.get(own.name, [own]) != [own]:
            report.problem(path, "the name means another provider's model; rename it")
