"""The breaker's whole state space, for up to three permits in flight and a coarse clock."""

import copy

from outlast.model.fault import Effect
from outlast.model.policy import BreakerPolicy
from outlast.resilience.breaker import TRANSITIONS, Breaker, Moved, Permit, State

POLICY = BreakerPolicy(
    consecutive_failures=2,
    window_s=1000.0,
    open_duration_s=2.0,
    open_multiplier=2.0,
    max_open_duration_s=4.0,
    open_jitter=0.0,
    half_open_max_calls=1,
    successes_to_close=2,
)
DEPTH = 11
IN_FLIGHT_MAX = 3


class Node:
    """A breaker, its permits in flight, and the moves that were told."""

    def __init__(self) -> None:
        self.moves: list[Moved] = []
        self.breaker = Breaker(POLICY, lambda: 0.5, self._told)
        self.permits: list[Permit] = []
        self.now = 0.0

    def _told(self, move: Moved) -> None:
        self.moves.append(move)

    def fork(self) -> "Node":
        return copy.deepcopy(self)

    def key(self) -> tuple[object, ...]:
        b = self.breaker
        left = max(0.0, b.open_until - self.now) if b.state is State.OPEN else 0.0
        permits = sorted((b._epoch - p.epoch, p.probe, p.counted_in is None) for p in self.permits)
        probes = (b._probes_out, b._probes_ok)
        return (b.state, b.streak, left, min(b._trips, 3), probes, tuple(permits))

    def check(self) -> None:
        b = self.breaker
        out = [p for p in self.permits if p.probe and p.epoch == b._epoch]
        assert b._probes_out == len(out) <= POLICY.half_open_max_calls, "a probe slot leaked"
        if b.state is State.CLOSED:
            assert b.streak < (POLICY.consecutive_failures or 0), "should have tripped"
        for move in self.moves:
            assert move.after in {a for (s, _), a in TRANSITIONS.items() if s is move.before}
        self.moves.clear()


def following(node: Node) -> list[Node]:
    found = []
    if len(node.permits) < IN_FLIGHT_MAX:
        other = node.fork()
        free = other.breaker.rests_until(other.now) is None
        permit = other.breaker.admit(other.now)
        assert (permit is not None) == free, "reading and admitting disagree"
        if permit is not None:
            other.permits.append(permit)
        found.append(other)
    for index in range(len(node.permits)):
        other = node.fork()
        other.breaker.first_token(other.permits[index], other.now)
        found.append(other)
        for effect in (Effect.SUCCESS, Effect.FAILURE, Effect.NEUTRAL):
            other = node.fork()
            before = other.breaker.state
            permit = other.permits.pop(index)
            stale = permit.epoch != other.breaker._epoch
            other.breaker.settle(permit, effect, other.now)
            if stale or effect is Effect.NEUTRAL:
                assert other.breaker.state is before, "a stale or neutral outcome moved it"
            found.append(other)
    other = node.fork()
    other.now += 2.0
    found.append(other)
    return found


def test_no_order_of_events_leaks_a_probe_or_moves_it_wrongly():
    start = Node()
    seen = {start.key()}
    frontier = [start]
    for _ in range(DEPTH):
        grown = []
        for node in frontier:
            for other in following(node):
                other.check()
                key = other.key()
                if key not in seen:
                    seen.add(key)
                    grown.append(other)
        frontier = grown
        if not frontier:
            break
    states = {key[0] for key in seen}
    assert states == set(State)


def test_from_every_state_health_comes_back():
    """Faults stop: a few successes after the longest cooldown close it, whatever went before."""
    start = Node()
    frontier, seen = [start], {start.key()}
    for _ in range(7):
        frontier = [
            n
            for node in frontier
            for n in following(node)
            if n.key() not in seen and not seen.add(n.key())  # type: ignore[func-returns-value]
        ]
        for node in frontier:
            other = node.fork()
            for permit in other.permits:
                other.breaker.settle(permit, Effect.NEUTRAL, other.now)
            for _ in range(POLICY.successes_to_close):
                other.now += POLICY.max_open_duration_s
                probe = other.breaker.admit(other.now)
                assert probe is not None, "wedged"
                other.breaker.settle(probe, Effect.SUCCESS, other.now)
            assert other.breaker.state is State.CLOSED
