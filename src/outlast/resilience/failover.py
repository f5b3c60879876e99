"""One request's walk along its plan, as `on(event, now) -> actions`.

Decides which candidate is tried when, how long each may take, when the same one is asked again
and when to stop. It touches nothing: the engine obeys its actions and answers with events. Health
stays outside too: the engine refuses a candidate that rests, and says with each failure whether
another one could be taken now (`others_usable`).

The life of an attempt: `Try` → `Dispatched` (or `Refused`, which costs no hop and no time) →
`Committed` or `Failed`. When one of the attempt's own timers runs out the machine says `Cut` and
goes on as after a failure. Every wait has a wake-up: while the walk is not over, `wake_at` is set.

Surprising cases:
- An attempt that the request's deadline cuts is blamed for nothing, unless its own limit had run
  out at the same instant.
- A Retry-After that is short enough is slept exactly; a longer one is obeyed by moving on.
- `max_failovers` counts candidates that were dispatched after the first, never skips.
- A candidate is not returned to, once the walk has moved past it.
"""

from collections.abc import Callable
from enum import Enum
from typing import assert_never

from msgspec import Struct

from outlast.model.clock import Instant
from outlast.model.fault import Fault, FaultKind, Retry, Timer, Verdict, judge
from outlast.model.plan import Plan
from outlast.model.policy import RetryWhen
from outlast.resilience.backoff import delay_s


class Begin(Struct, frozen=True):
    """The walk starts."""


class Refused(Struct, frozen=True):
    """The candidate could not be taken."""

    candidate: int


class Dispatched(Struct, frozen=True):
    """The candidate's attempt is under way. `others_usable`: a later one could be taken now.

    Asked for streams alone: a whole answer's limit is the same for the last candidate.
    """

    candidate: int
    others_usable: bool


class HeadArrived(Struct, frozen=True):
    """The candidate's response headers came."""

    candidate: int


class Committed(Struct, frozen=True):
    """The candidate's first semantic event, or its whole answer, came: it is the one."""

    candidate: int


class Failed(Struct, frozen=True):
    """The candidate's attempt failed before commit."""

    candidate: int
    fault: Fault
    others_usable: bool


class TimerFired(Struct, frozen=True):
    """`wake_at` has come. `others_usable` as in `Failed`. Firing too early is harmless."""

    others_usable: bool


class CallerLeft(Struct, frozen=True):
    """The caller closed its connection."""


Event = Begin | Refused | Dispatched | HeadArrived | Committed | Failed | TimerFired | CallerLeft


class Try(Struct, frozen=True):
    """Take the candidate if it can be taken. `slept_for_it`: its own throttle does not count."""

    candidate: int
    slept_for_it: bool = False


class Cut(Struct, frozen=True):
    """End the candidate's running attempt with this outcome."""

    candidate: int
    fault: Fault


class GiveUpReason(Enum):
    """Why the walk ended without an answer."""

    EXHAUSTED = "exhausted"
    DEADLINE = "deadline"
    FINAL = "final"  # the last fault allows no other candidate
    CALLER_GONE = "caller_gone"


class GiveUp(Struct, frozen=True):
    """The walk is over without an answer."""

    reason: GiveUpReason
    fault: Fault | None = None


Action = Try | Cut | GiveUp


class Phase(Enum):
    """Where the walk stands."""

    READY = "ready"
    TRYING = "trying"  # a `Try` is out, its `Dispatched` or `Refused` comes at once
    RUNNING = "running"
    WAITING = "waiting"
    COMMITTED = "committed"
    OVER = "over"


_GONE = Fault(FaultKind.CALLER_GONE)
_DEADLINE = Fault(FaultKind.DEADLINE)


class Failover:
    """The machine. One per request.

    `stream` picks the attempt's clock: `first_token` or `request`. `chance` is uniform in [0, 1).
    """

    __slots__ = (
        "_chance",
        "_dispatched_candidates",
        "_headers_by",
        "_next",
        "_plan",
        "_slept",
        "_stream",
        "_timeout_by",
        "_timer",
        "_tries",
        "_wait_until",
        "attempts",
        "candidate",
        "deadline",
        "failovers",
        "phase",
    )

    def __init__(
        self, plan: Plan, now: Instant, *, stream: bool, chance: Callable[[], float]
    ) -> None:
        self._plan = plan
        self._stream = stream
        self._chance = chance
        self._next = 0  # the candidate that a wait ends with
        self._slept = False
        self._tries = 0  # attempts at `candidate`
        self._dispatched_candidates = 0
        self._headers_by: Instant | None = None
        self._timeout_by: Instant | None = None
        self._timer = Timer.REQUEST
        self._wait_until: Instant = now
        self.attempts = 0
        self.failovers = 0  # candidates dispatched after the first
        self.candidate = -1
        self.deadline = now + plan.policy.deadline_s
        self.phase = Phase.READY

    @property
    def wake_at(self) -> Instant | None:
        """When the engine must send `TimerFired`; None: nothing is waited for."""
        if self.phase is Phase.WAITING:
            return min(self._wait_until, self.deadline)
        if self.phase is not Phase.RUNNING:
            return None
        at = self.deadline
        if self._timeout_by is not None and self._timeout_by < at:
            at = self._timeout_by
        if self._headers_by is not None and self._headers_by < at:
            at = self._headers_by
        return at

    def on(self, event: Event, now: Instant) -> list[Action]:
        """Take one event, say what to do. Events that come too late to matter do nothing."""
        match event:
            case Begin():
                return self._try(0, now)
            case Refused():
                if not self._hops_left():  # a retry was refused, and the last hop had led to it
                    return self._give_up(GiveUpReason.EXHAUSTED)
                return self._try(event.candidate + 1, now)
            case Dispatched():
                self._dispatch(event, now)
                return []
            case HeadArrived():
                self._headers_by = None
                return []
            case Committed():
                self.phase = Phase.COMMITTED
                return []
            case Failed():
                return self._failed(event.fault, now, others_usable=event.others_usable)
            case TimerFired():
                return self._timer_fired(now, others_usable=event.others_usable)
            case CallerLeft():
                return self._caller_left()
            case _:  # pragma: no cover - the type check proves that nothing is left
                assert_never(event)

    def _try(self, index: int, now: Instant, *, slept: bool = False) -> list[Action]:
        if now >= self.deadline:
            return self._give_up(GiveUpReason.DEADLINE)
        if index >= len(self._plan.candidates):
            return self._give_up(GiveUpReason.EXHAUSTED)
        self.phase = Phase.TRYING
        return [Try(index, slept)]

    def _dispatch(self, event: Dispatched, now: Instant) -> None:
        if event.candidate == self.candidate:
            self._tries += 1
        else:
            self.candidate = event.candidate
            self._tries = 1
            self.failovers = self._dispatched_candidates
            self._dispatched_candidates += 1
        self.attempts += 1
        self.phase = Phase.RUNNING
        timeouts = self._plan.candidates[event.candidate].policy.timeouts
        headers_s = timeouts.response_headers_s
        self._headers_by = None if headers_s is None else now + headers_s
        if not self._stream:
            self._timer = Timer.REQUEST
            self._timeout_by = now + timeouts.request_s
            return
        more = event.others_usable and self._hops_left() and self._attempts_left()
        limit_s = timeouts.first_token_s if more else timeouts.first_token_last_s
        self._timer = Timer.FIRST_TOKEN
        self._timeout_by = None if limit_s is None else now + limit_s

    def _timer_fired(self, now: Instant, *, others_usable: bool) -> list[Action]:
        if self.phase is Phase.WAITING:
            if now >= self.deadline:
                return self._give_up(GiveUpReason.DEADLINE)
            if now >= self._wait_until:
                return self._try(self._next, now, slept=self._slept)
            return []
        if self.phase is not Phase.RUNNING:
            return []
        timer = self._expired(now)
        if timer is not None:
            fault = Fault(FaultKind.TIMEOUT, timer=timer)
            cut = Cut(self.candidate, fault)
            if now >= self.deadline:
                return [cut, *self._give_up(GiveUpReason.DEADLINE)]
            return [cut, *self._failed(fault, now, others_usable=others_usable)]
        if now >= self.deadline:
            return [Cut(self.candidate, _DEADLINE), *self._give_up(GiveUpReason.DEADLINE)]
        return []

    def _expired(self, now: Instant) -> Timer | None:
        """The attempt's own timer that has run out, if it was not shortened by the deadline."""
        if self._headers_by is not None and self._headers_by <= min(now, self.deadline):
            return Timer.RESPONSE_HEADERS
        if self._timeout_by is not None and self._timeout_by <= min(now, self.deadline):
            return self._timer
        return None

    def _failed(self, fault: Fault, now: Instant, *, others_usable: bool) -> list[Action]:
        verdict = judge(fault)
        limited = fault.kind is FaultKind.PROVIDER_RATE_LIMITED
        if limited and not self._plan.policy.on_rate_limit:
            return self._give_up(GiveUpReason.FINAL, fault)
        if self._attempts_left():
            can_hop = verdict.hop and others_usable and self._hops_left()
            wait_s = self._retry_after_s(fault, verdict, can_hop=can_hop)
            if wait_s is not None and now + wait_s < self.deadline:
                return self._wait(self.candidate, wait_s, now, slept=limited)
        if not verdict.hop:
            return self._give_up(GiveUpReason.FINAL, fault)
        if not (self._attempts_left() and self._hops_left()):
            return self._give_up(GiveUpReason.EXHAUSTED, fault)
        hop_backoff = self._plan.policy.hop_backoff
        if hop_backoff is None or not others_usable:
            return self._try(self.candidate + 1, now)
        hop_s = delay_s(hop_backoff, self._dispatched_candidates, self._chance)
        return self._wait(self.candidate + 1, hop_s, now, slept=False)

    def _retry_after_s(self, fault: Fault, verdict: Verdict, *, can_hop: bool) -> float | None:
        """Seconds to wait before the same candidate is asked again; None: do not ask it."""
        policy = self._plan.candidates[self.candidate].policy.retry
        if not self._retry_allowed(verdict, can_hop=can_hop) or self._tries >= policy.max_attempts:
            return None
        if fault.kind.value not in policy.retry_on and fault.kind in _RETRY_KINDS:
            return None
        asked = fault.retry_after_s
        if asked is None:
            return delay_s(policy.backoff, self._tries, self._chance)
        if policy.max_retry_after_s is not None and asked > policy.max_retry_after_s:
            return None
        return asked

    def _retry_allowed(self, verdict: Verdict, *, can_hop: bool) -> bool:
        when = self._plan.candidates[self.candidate].policy.retry.when
        retry = verdict.retry
        match retry:
            case Retry.NEVER:
                return False
            case Retry.ONCE:
                allowed = self._tries == 1
            case Retry.YES | Retry.IF_LAST:
                allowed = True
            case _:  # pragma: no cover - the type check proves that nothing is left
                assert_never(retry)
        match when:
            case RetryWhen.ALWAYS:
                return allowed
            case RetryWhen.LAST_CANDIDATE:
                return allowed and not can_hop
            case RetryWhen.NEVER:
                return False
            case _:  # pragma: no cover - the type check proves that nothing is left
                assert_never(when)

    def _hops_left(self) -> bool:
        limit = self._plan.policy.max_failovers
        return limit is None or self._dispatched_candidates <= limit

    def _attempts_left(self) -> bool:
        return self.attempts < self._plan.attempts_max

    def _wait(self, index: int, wait_s: float, now: Instant, *, slept: bool) -> list[Action]:
        self.phase = Phase.WAITING
        self._next = index
        self._slept = slept
        self._wait_until = now + wait_s
        return []

    def _caller_left(self) -> list[Action]:
        running = self.phase in _LIVE
        gone = self._give_up(GiveUpReason.CALLER_GONE)
        return [Cut(self.candidate, _GONE), *gone] if running else gone

    def _give_up(self, reason: GiveUpReason, fault: Fault | None = None) -> list[Action]:
        self.phase = Phase.OVER
        return [GiveUp(reason, fault)]


_LIVE = frozenset({Phase.RUNNING, Phase.COMMITTED})

_RETRY_KINDS = frozenset(
    {
        FaultKind.TIMEOUT,
        FaultKind.PROVIDER_5XX,
        FaultKind.CONNECTION_ERROR,
        FaultKind.PROVIDER_RATE_LIMITED,
    }
)
"""`retry_on` speaks about these alone; other kinds follow the decision table."""
