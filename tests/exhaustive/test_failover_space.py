"""The failover machine's whole state space, for up to 3 candidates of up to 2 attempts each.

Every order of events that an engine could send is tried from every state that can be reached, and
the same rules are checked in each. A rule that can be broken at all is broken here.
"""

import copy
from collections.abc import Iterator

import pytest

from outlast.model.fault import Fault, FaultKind
from outlast.model.ids import CredentialId, DeploymentName, ProviderName
from outlast.model.plan import Candidate, Plan
from outlast.model.policy import (
    Backoff,
    CandidatePolicy,
    Jitter,
    RequestPolicy,
    RetryPolicy,
    RetryWhen,
    Timeouts,
)
from outlast.resilience.failover import (
    Action,
    Begin,
    CallerLeft,
    Committed,
    Cut,
    Dispatched,
    Event,
    Failed,
    Failover,
    GiveUp,
    HeadArrived,
    Phase,
    Refused,
    TimerFired,
    Try,
)

FAULTS = [
    Fault(FaultKind.PROVIDER_5XX, status=500),
    Fault(FaultKind.PROVIDER_RATE_LIMITED, retry_after_s=1.0),
    Fault(FaultKind.PROVIDER_RATE_LIMITED, retry_after_s=100.0),
    Fault(FaultKind.TRANSIENT_CONFLICT, status=409),
    Fault(FaultKind.PROVIDER_AUTH, status=401),
    Fault(FaultKind.CALLER_ERROR, status=400),
    Fault(FaultKind.EMPTY_RESPONSE),
]


def plan_of(number: int, when: RetryWhen, hop_backoff: Backoff | None, hops: int | None) -> Plan:
    candidate_policy = CandidatePolicy(
        retry=RetryPolicy(max_attempts=2, when=when, backoff=Backoff(1.0, 1.0, Jitter.NONE)),
        timeouts=Timeouts(response_headers_s=2.0, first_token_s=4.0, first_token_last_s=6.0),
    )
    candidates = tuple(
        Candidate(DeploymentName(n), ProviderName(n), CredentialId(n), candidate_policy)
        for n in "abc"[:number]
    )
    policy = RequestPolicy(
        deadline_s=14.0, max_failovers=hops, max_total_attempts=None, hop_backoff=hop_backoff
    )
    return Plan("m", "pool", "order", candidates, (), policy)


class Node:
    """A machine and what the engine would know at this point."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.walk = Failover(plan, 0.0, stream=True, chance=lambda: 0.0)
        self.now = 0.0
        self.running: int | None = None
        self.pending: Try | None = None
        self.tries = [0] * len(plan.candidates)
        self.over = False

    def fork(self) -> "Node":
        other = copy.copy(self)
        other.walk = copy.copy(self.walk)
        other.tries = list(self.tries)
        return other

    def key(self) -> tuple[object, ...]:
        walk = self.walk
        hidden = tuple(
            getattr(walk, slot) for slot in Failover.__slots__ if slot[1:] not in {"plan", "chance"}
        )
        return (*hidden, self.now, self.running, self.pending, tuple(self.tries), self.over)

    def send(self, event: Event, at: float) -> None:
        self.now = at
        self.obey(self.walk.on(event, at))

    def obey(self, actions: list[Action]) -> None:
        for action in actions:
            assert not self.over, "an action after the end"
            match action:
                case Try():
                    assert self.running is None, "two attempts at once"
                    assert self.pending is None
                    self.pending = action
                case Cut():
                    assert self.running == action.candidate, "cut what does not run"
                    self.running = None
                case GiveUp():
                    self.over = True
        self.check()

    def check(self) -> None:
        walk = self.walk
        committed = walk.phase is Phase.COMMITTED
        if self.over:
            assert self.running is None, "gave up with an attempt running"
            assert self.pending is None
            assert walk.wake_at is None
        elif self.pending is None and not committed:
            assert walk.wake_at is not None, "stuck: nothing will ever wake us"
            assert walk.wake_at <= walk.deadline
        assert sum(self.tries) == walk.attempts <= self.plan.attempts_max
        assert all(tried <= 2 for tried in self.tries), "more than max_attempts"
        hops = self.plan.policy.max_failovers
        assert hops is None or walk.failovers <= hops


def steps(node: Node) -> Iterator[Node]:
    """Every next state."""
    if node.over or node.walk.phase is Phase.COMMITTED:
        return
    if node.pending is not None:
        yield from after_try(node)
        return
    yield moved(node, CallerLeft(), node.now)
    wake = node.walk.wake_at
    assert wake is not None
    for others in (True, False):
        yield moved(node, TimerFired(others), max(wake, node.now))
    yield moved(node, TimerFired(True), node.now)  # spurious
    if node.running is None:
        return
    index = node.running
    yield moved(node, HeadArrived(index), node.now)
    yield moved(node, Committed(index), node.now)
    for fault in FAULTS:
        for others in (True, False):
            other = node.fork()
            other.running = None
            other.send(Failed(index, fault, others), other.now)
            yield other


def after_try(node: Node) -> Iterator[Node]:
    assert node.pending is not None
    index = node.pending.candidate
    assert not any(node.tries[index + 1 :]), "went back to a candidate"
    refused = node.fork()
    refused.pending = None
    refused.send(Refused(index), refused.now)
    yield refused
    for others in (True, False):
        taken = node.fork()
        taken.pending = None
        taken.running = index
        taken.tries[index] += 1
        taken.send(Dispatched(index, others), taken.now)
        yield taken


def moved(node: Node, event: Event, at: float) -> Node:
    other = node.fork()
    if isinstance(event, Committed):
        other.running = None
    other.send(event, at)
    return other


@pytest.mark.parametrize("hops", [None, 1])
@pytest.mark.parametrize("hop_backoff", [None, Backoff(1.0, 1.0, Jitter.NONE)])
@pytest.mark.parametrize("when", list(RetryWhen))
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_no_order_of_events_breaks_a_rule(number, when, hop_backoff, hops):
    start = Node(plan_of(number, when, hop_backoff, hops))
    start.send(Begin(), 0.0)
    seen = {start.key()}
    frontier = [start]
    ends = 0
    while frontier:
        node = frontier.pop()
        ends += node.over or node.walk.phase is Phase.COMMITTED
        for following in steps(node):
            key = following.key()
            if key not in seen:
                seen.add(key)
                frontier.append(following)
        assert len(seen) < 200_000, "the space is larger than it can be"
    assert ends > 0
