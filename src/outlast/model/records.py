"""Facts for observers: metrics, the log, `/stats`. Nothing here holds a prompt, an answer or a key.

Times are instants of the event loop's clock, durations seconds.
"""

from msgspec import Struct

from outlast.model.fault import FaultKind, Timer
from outlast.model.plan import Skipped
from outlast.model.usage import Usage


class AttemptStarted(Struct, frozen=True):
    """One dispatch to one deployment."""

    request_id: str
    pool: str
    deployment: str
    provider: str


class AttemptEnded(Struct, frozen=True):
    """One attempt's one outcome, at its end. `kind` None: it succeeded.

    `status` is what the provider answered. `first_token_s` is set when a semantic event (or the
    whole answer) came. `blamed` is False where the outcome is neutral.
    """

    request_id: str
    pool: str
    deployment: str
    provider: str
    kind: FaultKind | None
    status: int | None
    timer: Timer | None
    detail: str
    duration_s: float
    first_token_s: float | None
    blamed: bool


class FailoverTriggered(Struct, frozen=True):
    """The request moves on. `attempt` is 1-based: the attempt that failed."""

    request_id: str
    pool: str
    attempt: int
    deployment: str
    provider: str
    status: int | None
    reason: FaultKind


class BreakerMoved(Struct, frozen=True):
    """A deployment's breaker changed state: `closed`, `open`, `half_open`."""

    deployment: str
    provider: str
    before: str
    after: str
    consecutive_failures: int


class RequestEnded(Struct, frozen=True):
    """The one record of a request, after its last byte.

    `outcome` is one of ok, client_error, exhausted, error, client_gone, stream_broken. `status`
    is what the caller got (499: nothing, it left). `failovers` counts candidates dispatched
    after the first. `saved`: answered only because of failover.
    """

    request_id: str
    dialect: str
    pool: str
    model: str
    stream: bool
    outcome: str
    status: int
    code: str | None
    attempts: tuple[AttemptEnded, ...]
    skipped: tuple[Skipped, ...]
    failovers: int
    duration_s: float
    first_token_s: float | None
    usage: Usage | None
    saved: bool


class Noted(Struct, frozen=True):
    """A debug fact (`candidate_skipped`, `failover_backoff`, `caller_gone` …), logged on demand."""

    event: str
    request_id: str
    fields: dict[str, str | int | float | None]


Record = AttemptStarted | AttemptEnded | FailoverTriggered | BreakerMoved | RequestEnded | Noted
