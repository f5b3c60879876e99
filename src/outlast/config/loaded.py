"""What a configuration amounts to: the topology, and the settings of the process around it."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from outlast.config.layers import Layered
from outlast.model.ids import ProviderName
from outlast.model.topology import Topology


class ServerSettings(Struct, frozen=True):
    """The listener. `auth` is `auto` or `open`; `port` 0: the system chooses one."""

    host: str
    port: int
    auth: str
    request_body_bytes_max: int
    drain_timeout_s: float


class TelemetrySettings(Struct, frozen=True):
    """What is told to operators, and to whom. `log_format` is `auto`, `json` or `text`."""

    metrics: bool
    metrics_token: str | None
    log_format: str
    debug_log: bool

    def __repr__(self) -> str:
        return f"TelemetrySettings(metrics={self.metrics}, log_format={self.log_format!r})"


class Provenance(Struct, frozen=True):
    """Every effective value with its layer.

    file: the top level. providers: what they say of themselves. deployments, members: their own
    keys and the candidate policy that results; members in the pool's order. pools: their keys and
    the request policy that results.
    """

    file: Layered
    providers: Mapping[str, Layered]
    deployments: Mapping[str, Layered]
    pools: Mapping[str, Layered]
    members: Mapping[str, tuple[Layered, ...]]


class Loaded(Struct, frozen=True):
    """A configuration that can be used.

    origin: where it came from. discover: providers whose models are to be listed at start.
    warnings, aliases: lines for people.
    """

    topology: Topology
    server: ServerSettings
    telemetry: TelemetrySettings
    provenance: Provenance
    warnings: list[str]
    aliases: list[str]
    origin: Literal["file", "environment", "simulated"]
    discover: tuple[ProviderName, ...] = ()
