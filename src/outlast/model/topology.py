"""What exists: providers, credentials, deployments, pools, and the names that reach them.

A `Topology` is one immutable snapshot, built from a validated configuration. Requests keep the
one they were admitted under.
"""

from collections.abc import Mapping

from msgspec import Struct

from outlast.model.ids import CredentialId, DeploymentName, ModelName, PoolName, ProviderName
from outlast.model.policy import CandidatePolicy, RequestPolicy


class Origin(Struct, frozen=True):
    """Where connections of a provider go. `host` is lower-case, without brackets for IPv6."""

    scheme: str  # "http" | "https"
    host: str
    port: int


class Credential(Struct, frozen=True):
    """One key of a provider. Its text never shows in `repr`."""

    id: CredentialId
    secret: str | None  # None: the provider takes no key (a local server)

    def __repr__(self) -> str:
        return f"Credential({self.id!r})"


class Provider(Struct, frozen=True):
    """An account at a vendor. `base_path` has no trailing slash ("/v1")."""

    name: ProviderName
    display_name: str
    tag: str
    dialect: str
    origin: Origin
    base_path: str
    credential: Credential
    headers: tuple[tuple[bytes, bytes], ...] = ()
    enabled: bool = True
    simulated: bool = False

    def __repr__(self) -> str:
        return f"Provider({self.name!r}, {self.dialect!r}, {self.origin.host!r})"


class Deployment(Struct, frozen=True):
    """One upstream model at one provider: the unit of order, health and capacity.

    `max_concurrent` is the number of attempts that may run at once (None: no limit). `policy` is
    what applies when no pool says otherwise.
    """

    name: DeploymentName
    provider: ProviderName
    upstream_model: str
    serves: ModelName
    policy: CandidatePolicy
    max_concurrent: int | None = None
    enabled: bool = True


class Member(Struct, frozen=True):
    """A deployment inside a pool, with the policy that results from all layers."""

    deployment: DeploymentName
    policy: CandidatePolicy
    enabled: bool = True


class Pool(Struct, frozen=True):
    """A named set of deployments in the order in which they are tried."""

    name: PoolName
    members: tuple[Member, ...]
    policy: RequestPolicy
    strategy: str = "order"
    exclusions: frozenset[DeploymentName] = frozenset()


class Topology(Struct, frozen=True):
    """Everything that can be asked for, and the request policy of plans without a pool."""

    providers: Mapping[ProviderName, Provider]
    deployments: Mapping[DeploymentName, Deployment]
    pools: Mapping[PoolName, Pool]
    policy: RequestPolicy
    version: int = 1
