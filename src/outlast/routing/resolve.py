"""From the name in a request to what it names.

An `Index` is built once per topology, so that a request costs one look-up. Names are found in
this order: a pool; a canonical model (what deployments `serve`); `direct/<provider>/<upstream>`
or `<provider>/<upstream>`, which is exactly one deployment; a deployment's name; a base name (the
leaf after the last `/`) that exactly one model answers to. A pool or a canonical model fails over
among its own; the others are one candidate.

A base name is compared without regard to case; every other name exactly.
"""

from collections.abc import Iterable

from msgspec import Struct

from outlast.model.plan import Candidate, Skipped, SkipReason
from outlast.model.policy import RequestPolicy
from outlast.model.topology import Deployment, Member, Pool, Topology

DIRECT_LABEL = "direct"
"""Metric label of everything that is no pool."""


class Target(Struct, frozen=True):
    """What a name stands for: candidates in listed order, and who was dropped at once."""

    label: str
    strategy: str
    candidates: tuple[Candidate, ...]
    skipped: tuple[Skipped, ...]
    policy: RequestPolicy


class Index:
    """All names of one topology."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._targets: dict[str, Target] = {}
        self._bases: dict[str, Target | None] = {}
        models = _by_model(topology.deployments.values())
        for pool in topology.pools.values():
            self._targets[pool.name] = self._pool(pool)
        for model, deployments in models.items():
            self._targets.setdefault(model, self._plain(deployments))
        for deployment in topology.deployments.values():
            single = self._plain([deployment])
            direct = f"{deployment.provider}/{deployment.upstream_model}"
            self._targets[f"{DIRECT_LABEL}/{direct}"] = single
            self._targets.setdefault(direct, single)
            self._targets.setdefault(deployment.name, single)
        for model in models:
            base = model.rsplit("/", 1)[-1].strip().lower()
            # Two models with one leaf: the bare name answers to neither.
            self._bases[base] = None if base in self._bases else self._targets[model]

    def find(self, name: str) -> Target | None:
        """What `name` stands for; None: nothing."""
        return self._targets.get(name) or self._bases.get(name.lower())

    def names(self) -> list[str]:
        """Names to offer: pools, models and deployments, in the order of the configuration."""
        topology = self._topology
        seen = dict.fromkeys([*topology.pools, *_by_model(topology.deployments.values())])
        return [*seen, *(name for name in topology.deployments if name not in seen)]

    def _pool(self, pool: Pool) -> Target:
        return self._target(
            pool.members, label=pool.name, strategy=pool.strategy, policy=pool.policy, pool=pool
        )

    def _plain(self, deployments: list[Deployment]) -> Target:
        members = [Member(d.name, d.policy) for d in deployments]
        return self._target(
            members, label=DIRECT_LABEL, strategy="order", policy=self._topology.policy
        )

    def _target(
        self,
        members: Iterable[Member],
        *,
        label: str,
        strategy: str,
        policy: RequestPolicy,
        pool: Pool | None = None,
    ) -> Target:
        candidates: list[Candidate] = []
        skipped: list[Skipped] = []
        for member in members:
            deployment = self._topology.deployments[member.deployment]
            provider = self._topology.providers[deployment.provider]
            if pool is not None and member.deployment in pool.exclusions:
                skipped.append(Skipped(member.deployment, SkipReason.EXCLUDED))
            elif member.enabled and deployment.enabled and provider.enabled:
                key = provider.credential.id
                candidates.append(Candidate(deployment.name, provider.name, key, member.policy))
            else:
                skipped.append(Skipped(member.deployment, SkipReason.DISABLED))
        return Target(label, strategy, tuple(candidates), tuple(skipped), policy)


def _by_model(deployments: Iterable[Deployment]) -> dict[str, list[Deployment]]:
    models: dict[str, list[Deployment]] = {}
    for deployment in deployments:
        models.setdefault(deployment.serves, []).append(deployment)
    return models
