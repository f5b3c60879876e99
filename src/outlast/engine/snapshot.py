"""One topology made ready for the hot path: names indexed, routes and headers built once."""

from collections.abc import Mapping

from msgspec import Struct

from outlast.model.ids import DeploymentName
from outlast.model.topology import Deployment, Origin, Provider, Topology
from outlast.protocols.dialect import Dialect
from outlast.routing.resolve import Index

HEADER_SECRET_BYTES_MIN = 8
"""A configured header value shorter than this is no secret: "1" and "true" stand in any text."""


class Route(Struct, frozen=True):
    """How a deployment is reached. `headers` carry its key and never show in `repr`."""

    deployment: Deployment
    provider: Provider
    dialect: Dialect
    origin: Origin
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    answer_headers: tuple[tuple[bytes, bytes], ...]  # who answered, as callers read it
    secrets: tuple[bytes, ...]  # what no answer of ours may quote

    def __repr__(self) -> str:
        return f"Route({self.deployment.name!r})"


class Snapshot(Struct, frozen=True):
    """What a request is admitted under; swapped as one reference."""

    topology: Topology
    index: Index
    routes: Mapping[DeploymentName, Route]


def provider_headers(provider: Provider, dialect: Dialect) -> tuple[tuple[bytes, bytes], ...]:
    """Headers of every call to a provider: its key, ours, then what the operator adds."""
    ours = (
        (b"content-type", b"application/json"),
        (b"accept-encoding", b"identity"),  # frames are looked into, so nothing is compressed
        (b"user-agent", b"outlast"),
    )
    configured = provider.headers
    replaced = {name for name, _ in configured}
    kept = tuple(
        h for h in (*dialect.auth(provider.credential.secret), *ours) if h[0] not in replaced
    )
    return kept + configured


def _secrets(provider: Provider) -> tuple[bytes, ...]:
    """The key, and the operator's header values, whole and without their scheme."""
    secrets = {value for _, value in provider.headers}
    secrets |= {value.rsplit(b" ", 1)[-1] for value in secrets}
    secrets = {secret for secret in secrets if len(secret) >= HEADER_SECRET_BYTES_MIN}
    if provider.credential.secret:
        secrets.add(provider.credential.secret.encode())
    return tuple(secrets)


def build_snapshot(topology: Topology, dialects: Mapping[str, Dialect]) -> Snapshot:
    """Index the names and build every route of a topology."""
    routes: dict[DeploymentName, Route] = {}
    for deployment in topology.deployments.values():
        provider = topology.providers[deployment.provider]
        dialect = dialects[provider.dialect]
        routes[deployment.name] = Route(
            deployment=deployment,
            provider=provider,
            dialect=dialect,
            origin=provider.origin,
            target=(provider.base_path + dialect.path).encode("ascii"),
            headers=provider_headers(provider, dialect),
            answer_headers=(
                (b"x-outlast-provider", provider.name.encode()),
                (b"x-outlast-deployment", deployment.name.encode()),
            ),
            secrets=_secrets(provider),
        )
    return Snapshot(topology, Index(topology), routes)
