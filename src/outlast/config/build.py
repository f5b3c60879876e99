"""From a read file to a topology: references resolved, layers laid, policies built.

Owns references between places, the order of layers (built-in, file, provider, deployment, pool,
member) and the checks that need more than one place. Reads no file and no environment.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from outlast.config.document import Document, Place, PoolPlace
from outlast.config.layers import (
    FILE,
    Layered,
    built_in,
    candidate_policy,
    request_policy,
)
from outlast.config.loaded import Provenance
from outlast.config.names import check_collisions
from outlast.config.provider import read_provider
from outlast.config.report import Report, join, shown
from outlast.config.table import (
    CANDIDATE_POLICY,
    DEPLOYMENT_SECTION,
    FILE_SECTION,
    POOL_SECTION,
    PROVIDER_SECTION,
    REQUEST_POLICY,
)
from outlast.config.table_patience import POOL_FAILOVER
from outlast.config.table_places import DEPLOYMENT, POOL, PROVIDER
from outlast.model.ids import DeploymentName, ModelName, PoolName, ProviderName
from outlast.model.topology import Deployment, Member, Pool, Provider, Topology


class Built(Struct, frozen=True):
    """A topology and where its values came from."""

    topology: Topology
    provenance: Provenance


def build(document: Document, report: Report) -> Built:
    """Connect everything.

    Raises:
        ConfigError: with every problem of the reading and of this.
    """
    return _Building(document, report).build()


class _Building:
    """One pass over a document; holds what later places need of earlier ones."""

    def __init__(self, document: Document, report: Report) -> None:
        self._document = document
        self._report = report
        self._file = built_in(FILE_SECTION.keys.values()).over(document.file, FILE)
        self._providers: dict[ProviderName, Provider] = {}
        self._provider_places = {ProviderName(p.name): p for p in document.providers}
        self._deployments: dict[DeploymentName, Deployment] = {}
        self._named = {DeploymentName(p.name) for p in document.deployments}
        self._candidates: dict[str, Layered] = {}

    def build(self) -> Built:
        providers = {p.name: self._provider(p) for p in self._document.providers}
        own = {p.name: self._deployment(p) for p in self._document.deployments}
        if not self._named and not self._report.problems:
            message = "none; add one: `NAME: {provider: NAME, upstream_model: ID}`"
            self._report.problem("deployments", message)
        pools = [self._pool(p) for p in self._document.pools]
        check_collisions(
            self._deployments, [p.place.name for p in self._document.pools], self._report
        )
        self._warn_deadline("failover.deadline", self._file, [self._file])
        self._report.check()
        topology = Topology(
            providers=self._providers,
            deployments=self._deployments,
            pools={pool.name: pool for pool, _, _ in pools if pool is not None},
            policy=request_policy(self._file),
        )
        provenance = Provenance(
            file=self._file,
            providers=providers,
            deployments=own,
            pools={place.place.name: settings for place, (_, settings, _) in self._with(pools)},
            members={place.place.name: members for place, (_, _, members) in self._with(pools)},
        )
        return Built(topology, provenance)

    def _with(
        self, pools: list[tuple[Pool | None, Layered, tuple[Layered, ...]]]
    ) -> Iterator[tuple[PoolPlace, tuple[Pool | None, Layered, tuple[Layered, ...]]]]:
        return zip(self._document.pools, pools, strict=True)

    def _provider(self, place: Place) -> Layered:
        if place.readable:
            self._read_provider(place)
        own = built_in(PROVIDER).over(place.flat, f"provider {place.name}", PROVIDER)
        policy = self._file.only(CANDIDATE_POLICY)
        return Layered({**own.settings, **policy.settings}).over(
            place.flat, f"provider {place.name}", PROVIDER_SECTION.keys.values()
        )

    def _read_provider(self, place: Place) -> None:
        provider = read_provider(place.name, place.flat, place.written, place.path, self._report)
        if provider is not None:
            self._providers[provider.name] = provider

    def _deployment(self, place: Place) -> Layered:
        layer = f"deployment {place.name}"
        policy = self._file.only(CANDIDATE_POLICY)
        provider = self._reference(place, "provider", {str(n) for n in self._provider_places})
        if provider is not None:
            above = self._provider_places[ProviderName(provider)]
            policy = policy.over(above.flat, f"provider {provider}", CANDIDATE_POLICY)
        policy = policy.over(place.flat, layer, CANDIDATE_POLICY)
        self._candidates[place.name] = policy
        upstream = place.flat.get("upstream_model")
        if place.readable and "upstream_model" not in place.written:
            here = join(place.path, "upstream_model")
            self._report.problem(here, "missing; write the provider's name for the model")
        if provider is not None and isinstance(upstream, str):
            serves = place.flat.get("serves")
            limit = place.flat.get("max_concurrent")
            name = DeploymentName(place.name)
            self._deployments[name] = Deployment(
                name=name,
                provider=ProviderName(provider),
                upstream_model=upstream,
                serves=ModelName(serves if isinstance(serves, str) else upstream),
                policy=candidate_policy(policy),
                max_concurrent=limit if isinstance(limit, int) else None,
                enabled=place.flat.get("enabled") is not False,
            )
        own = built_in(DEPLOYMENT).over(
            {k: v for k, v in place.flat.items() if k in DEPLOYMENT_SECTION.keys}, layer, DEPLOYMENT
        )
        return Layered({**own.settings, **policy.settings})

    def _reference(self, place: Place, key: str, known: set[str]) -> str | None:
        """The name that a required reference holds, if it exists."""
        here = join(place.path, key)
        name = place.flat.get(key)
        if not place.readable:
            return None
        if key not in place.written:
            self._report.problem(here, f"missing; write the name of a {key}")
        elif isinstance(name, str):
            if name in known:
                return name
            choice = ", ".join(map(ascii, sorted(known)[:10])) or "none"
            self._report.problem(here, f"no {key} is called {shown(name)}; there are: {choice}")
        return None

    def _pool(self, pool: PoolPlace) -> tuple[Pool | None, Layered, tuple[Layered, ...]]:
        place = pool.place
        layer = f"pool {place.name}"
        settings = (
            built_in((*POOL, *POOL_FAILOVER))
            .over(self._document.file, FILE, POOL)
            .over(place.flat, layer, (*POOL, *POOL_FAILOVER))
        )
        whole = self._file.only(k for k in REQUEST_POLICY if k.path != "strategy")
        settings = Layered({**whole.settings, **settings.settings})
        settings = settings.over(
            place.flat, layer, (k for k in REQUEST_POLICY if k.path in POOL_SECTION.keys)
        )
        members: list[Member] = []
        layered: list[Layered] = []
        for member in pool.members:
            name = self._reference(member, "deployment", {str(n) for n in self._named})
            if name is None:
                continue
            policy = self._candidates[name].over(place.flat, layer, CANDIDATE_POLICY)
            policy = policy.over(member.flat, f"{layer} member {member.name}", CANDIDATE_POLICY)
            layered.append(policy)
            enabled = member.flat.get("enabled") is not False
            members.append(Member(DeploymentName(name), candidate_policy(policy), enabled))
        complete = len(members) == len(pool.members)
        exclusions = settings.words("failover.exclusions")
        if complete and members:
            self._check_members(place, members, exclusions)
        if _says_patience(pool) and layered:
            self._warn_deadline(f"{place.path}.failover.deadline", settings, layered)
        built = Pool(
            name=PoolName(place.name),
            members=tuple(members),
            policy=request_policy(settings),
            strategy=settings.word("strategy"),
            exclusions=frozenset(map(DeploymentName, exclusions)),
        )
        return built, settings, tuple(layered)

    def _check_members(
        self, place: Place, members: list[Member], exclusions: frozenset[str]
    ) -> None:
        path = f"{place.path}.members"
        names = [member.deployment for member in members]
        for index, name in enumerate(names):
            if name in names[:index]:
                self._report.problem(f"{path}[{index}]", f"{name!a} is a member already")
        for stranger in sorted(exclusions.difference(names)):
            here = f"{place.path}.failover.exclusions"
            self._report.problem(here, f"{stranger!a} is no member of this pool")
        if not any(m.deployment not in exclusions and self._usable(m) for m in members):
            self._report.problem(path, "every member is excluded or disabled; keep one")

    def _usable(self, member: Member) -> bool:
        deployment = self._deployments.get(member.deployment)
        if deployment is None:
            return True  # it has problems of its own
        provider = self._providers.get(deployment.provider)
        return member.enabled and deployment.enabled and (provider is None or provider.enabled)

    def _warn_deadline(self, path: str, request: Layered, candidates: list[Layered]) -> None:
        deadline_s = request.number("failover.deadline")
        attempt_s = max(c.number("timeouts.request") for c in candidates)
        if deadline_s < 2 * attempt_s:
            message = (
                f"{deadline_s:g} s is less than twice timeouts.request ({attempt_s:g} s): "
                "a hanging candidate leaves no time for the next"
            )
            self._report.warn(path, message)


def _says_patience(pool: PoolPlace) -> bool:
    """Does a pool change its deadline or an attempt's limit, so that a warning is about it?"""
    places: list[Mapping[str, object]] = [pool.place.flat, *(m.flat for m in pool.members)]
    return any(key in flat for flat in places for key in ("failover.deadline", "timeouts.request"))
