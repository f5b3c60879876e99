"""The `/stats` page: what every deployment is doing now, and totals since the start.

Counts requests itself; everything about health is read when somebody asks, through the callable
that is handed in, so that nothing here owns or copies the health of a deployment.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from outlast.model.clock import Instant
from outlast.model.records import (
    AttemptEnded,
    BreakerMoved,
    FailoverTriggered,
    Record,
    RequestEnded,
)
from outlast.telemetry.fanout import Consuming

Rows = Callable[[Instant], Iterable[Struct]]
"""Now -> one row per deployment."""


class Totals(Struct, frozen=True):
    """Counts since the process started. `outcomes` counts requests by how they ended."""

    requests: int
    outcomes: dict[str, int]
    saved: int
    attempts: int
    failovers: int
    breaker_trips: int


class Page(Struct, frozen=True):
    """The whole page. `uptime_s` is seconds since the start."""

    version: str
    uptime_s: float
    totals: Totals
    deployments: list[Struct]


class Stats:
    """An Observer that counts, and the page that it makes of it."""

    def __init__(self, version: str, now: Callable[[], Instant], rows: Rows) -> None:
        self._version = version
        self._now = now
        self._rows = rows
        self._started = now()
        self._outcomes: Counter[str] = Counter()
        self._saved = 0
        self._attempts = 0
        self._failovers = 0
        self._trips = 0
        self.consuming: Consuming = {
            RequestEnded: self._request,
            AttemptEnded: self._attempt,
            FailoverTriggered: self._failover,
            BreakerMoved: self._transition,
        }

    def observe(self, record: Record) -> None:
        """Count a fact. Never raises, never waits."""
        count = self.consuming.get(type(record))
        if count is not None:
            count(record)

    def render(self) -> bytes:
        """The page as JSON."""
        now = self._now()
        totals = Totals(
            requests=self._outcomes.total(),
            outcomes=dict(self._outcomes),
            saved=self._saved,
            attempts=self._attempts,
            failovers=self._failovers,
            breaker_trips=self._trips,
        )
        uptime_s = round(now - self._started, 3)
        return msgspec.json.encode(Page(self._version, uptime_s, totals, list(self._rows(now))))

    def _request(self, record: RequestEnded) -> None:
        self._outcomes[record.outcome] += 1
        self._saved += record.saved

    def _attempt(self, _record: AttemptEnded) -> None:
        self._attempts += 1

    def _failover(self, _record: FailoverTriggered) -> None:
        self._failovers += 1

    def _transition(self, record: BreakerMoved) -> None:
        self._trips += record.after == "open"
