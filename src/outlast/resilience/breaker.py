"""The circuit breaker of one deployment: closed passes, open rejects, half-open probes.

It decides whether an attempt may start and what an attempt's one outcome changes. It does not
know about throttles, refused credentials or capacity (`rests.py`, the engine's gate), nor what
counts as a failure (`model.fault.judge`).

An admission is a `Permit`, a token with an epoch. Every change of state begins a new epoch, and
the outcome of a permit from an earlier one is ignored, so a straggler that was admitted before
the trip can neither free nor decide somebody else's probe.

Surprising cases:
- A probe's first semantic event closes the breaker, because an answer that has begun proves more
  than waiting for its end would. Its permit is re-issued for the new epoch, so a provider that
  begins well and always dies mid-stream is counted, once per attempt, at the attempt's end.
- Provisional successes (first token) enter the window only. The streak of consecutive failures
  is settled at an attempt's end, so a stream that is still running hides nothing.
- A neutral outcome changes nothing and gives its probe slot back.
- A long quiet time (`QUIET_COOLDOWNS` x the longest cooldown without a failure) forgets how often
  the breaker had tripped, so the next trip rests briefly again.

Cooldown number n (0, 1, 2 ...) lasts
``min(open_duration_s * open_multiplier ** n, max_open_duration_s) * (1 + open_jitter * u)``
with u uniform in [-1, 1).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from outlast.model.clock import Instant
from outlast.model.fault import Effect
from outlast.model.policy import BreakerPolicy
from outlast.resilience.window import Counts, Window

QUIET_COOLDOWNS = 10
"""After this many longest cooldowns without a failure the trip count starts over."""

_EXPONENT_MAX = 64
"""Beyond this the cooldown has long reached its cap; keeps the power finite."""


class State(Enum):
    """In the electrical sense: open rejects."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Event(Enum):
    """What moves the breaker."""

    TRIPPED = "tripped"
    COOLED_DOWN = "cooled_down"
    PROBES_SUCCEEDED = "probes_succeeded"
    PROBE_FAILED = "probe_failed"


TRANSITIONS: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.CLOSED, Event.TRIPPED): State.OPEN,
        (State.OPEN, Event.COOLED_DOWN): State.HALF_OPEN,
        (State.HALF_OPEN, Event.PROBES_SUCCEEDED): State.CLOSED,
        (State.HALF_OPEN, Event.PROBE_FAILED): State.OPEN,
    }
)
"""The whole machine. The picture in `docs/explanation/breaker.md` is drawn from it."""


class Moved(NamedTuple):
    """One change of state, for observers."""

    before: State
    after: State
    consecutive_failures: int


class Permit:
    """One admission. Belongs to one attempt; handed back exactly once through `settle`."""

    __slots__ = ("counted_in", "epoch", "probe", "settled")

    def __init__(self, epoch: int, *, probe: bool) -> None:
        self.epoch = epoch
        self.probe = probe
        self.settled = False
        self.counted_in: int | None = None  # where its provisional success was counted


class Breaker:
    """One machine for one deployment.

    `chance` returns a uniform number in [0, 1); `moved` is told of every change of state.
    """

    __slots__ = (
        "_chance",
        "_epoch",
        "_last_failure",
        "_moved",
        "_policy",
        "_probes_ok",
        "_probes_out",
        "_trips",
        "_window",
        "open_until",
        "state",
        "streak",
    )

    def __init__(
        self,
        policy: BreakerPolicy,
        chance: Callable[[], float],
        moved: Callable[[Moved], None],
    ) -> None:
        self._policy = policy
        self._chance = chance
        self._moved = moved
        self._window = Window(policy.window_s)
        self._epoch = 0
        self._probes_out = 0
        self._probes_ok = 0
        self._trips = 0
        self._last_failure: Instant | None = None
        self.state = State.CLOSED
        self.open_until: Instant = 0.0
        self.streak = 0

    def rests_until(self, now: Instant) -> Instant | None:
        """None when an attempt could start now, else when to look again. Changes nothing.

        With all its probes out a half-open breaker names `now`: the probe decides, any moment.
        """
        if self.state is State.CLOSED:
            return None
        if self.state is State.OPEN:
            return self.open_until if now < self.open_until else None
        return now if self._probes_out >= self._policy.half_open_max_calls else None

    def admit(self, now: Instant) -> Permit | None:
        """Hand out a permit, or None while it rests. A cooldown that is over becomes half-open."""
        if self.state is State.CLOSED:
            return Permit(self._epoch, probe=False)
        if self.state is State.OPEN:
            if now < self.open_until:
                return None
            self._move(Event.COOLED_DOWN)
        if self._probes_out >= self._policy.half_open_max_calls:
            return None
        self._probes_out += 1
        return Permit(self._epoch, probe=True)

    def first_token(self, permit: Permit, now: Instant) -> None:
        """The attempt's first semantic event (or whole answer) came: a provisional success."""
        if permit.settled or permit.epoch != self._epoch or permit.counted_in is not None:
            return
        permit.counted_in = self._window.record(now, failed=False)
        if permit.probe:
            self._probes_out -= 1
            permit.probe = False
            self._probes_ok += 1
            if self._probes_ok >= self._policy.successes_to_close:
                self._move(Event.PROBES_SUCCEEDED)
                permit.epoch = self._epoch

    def settle(self, permit: Permit, effect: Effect, now: Instant) -> None:
        """The attempt's one outcome, at its end. A second call is a programmer's error."""
        assert not permit.settled, "one attempt has exactly one outcome"
        permit.settled = True
        if permit.epoch != self._epoch:
            return
        if permit.probe:
            self._probes_out -= 1
        if effect is Effect.SUCCESS:
            self._succeed(permit, now)
        elif effect is Effect.FAILURE:
            self._fail(permit, now)

    def counts(self, now: Instant) -> Counts:
        return self._window.counts(now)

    def _succeed(self, permit: Permit, now: Instant) -> None:
        if permit.counted_in is None:
            permit.counted_in = self._window.record(now, failed=False)
        if self.state is State.CLOSED:
            self.streak = 0
        elif permit.probe:
            self._probes_ok += 1
            if self._probes_ok >= self._policy.successes_to_close:
                self._move(Event.PROBES_SUCCEEDED)

    def _fail(self, permit: Permit, now: Instant) -> None:
        if permit.counted_in is None:
            self._window.record(now, failed=True)
        else:
            self._window.replace(permit.counted_in, now)
        quiet_s = QUIET_COOLDOWNS * self._policy.max_open_duration_s
        if self._last_failure is not None and now - self._last_failure > quiet_s:
            self._trips = 0
        self._last_failure = now
        self.streak += 1
        if self.state is State.HALF_OPEN:
            self._open(Event.PROBE_FAILED, now)
        elif self._trips_on_streak():
            self._open(Event.TRIPPED, now)

    def _trips_on_streak(self) -> bool:
        limit = self._policy.consecutive_failures
        return limit is not None and self.streak >= limit

    def _open(self, event: Event, now: Instant) -> None:
        policy = self._policy
        grown = policy.open_duration_s * policy.open_multiplier ** min(self._trips, _EXPONENT_MAX)
        capped = min(grown, policy.max_open_duration_s)
        spread = 1.0 + policy.open_jitter * (2.0 * self._chance() - 1.0)
        self._trips += 1
        self.open_until = now + capped * spread
        self._move(event)

    def _move(self, event: Event) -> None:
        before = self.state
        self.state = TRANSITIONS[before, event]
        self._epoch += 1
        self._probes_out = 0
        self._probes_ok = 0
        moved = Moved(before, self.state, self.streak)
        if self.state is State.CLOSED:
            self.streak = 0
        self._moved(moved)
