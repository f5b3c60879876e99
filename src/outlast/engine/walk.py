"""Obeys the failover machine until one attempt commits or the walk is over.

Owns the running attempt: takes its slot and permit, dispatches it, records its one outcome and
gives everything back, cancellation included. What to do next is `resilience.failover`'s word.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from outlast.engine.attempts import Attempt
from outlast.engine.health import HealthBook, Hold
from outlast.engine.mailbox import Item, Mailbox, Word
from outlast.engine.settle import Ending, Tried
from outlast.engine.snapshot import Snapshot
from outlast.model.clock import Instant
from outlast.model.fault import Fault, FaultKind
from outlast.model.health import Unavailable
from outlast.model.plan import Candidate, Plan, Skipped
from outlast.model.records import AttemptEnded, AttemptStarted, FailoverTriggered, Noted
from outlast.model.request import NeutralRequest
from outlast.ports import Clock, Handle, Observer, Upstream, UpstreamCall
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
    GiveUpReason,
    HeadArrived,
    Phase,
    Refused,
    TimerFired,
    Try,
)

_GONE = Fault(FaultKind.CALLER_GONE)
_BEGIN = Begin()
_TIMER = Item(Word.TIMER)


class World(Struct, frozen=True):
    """What every walk needs and none owns: one for all requests of a snapshot.

    `chance` returns uniform numbers in [0, 1).
    """

    snapshot: Snapshot
    health: HealthBook
    upstream: Upstream
    clock: Clock
    observer: Observer
    chance: Callable[[], float]
    loop: asyncio.AbstractEventLoop


class Walk:
    """One request on its way along its plan."""

    __slots__ = (
        "_armed_at",
        "_forward",
        "_handle",
        "_now",
        "_request",
        "_world",
        "attempt",
        "ended",
        "failed",
        "gave_up",
        "machine",
        "mailbox",
        "plan",
        "refusals",
        "request_id",
        "started",
        "tried",
    )

    def __init__(
        self,
        world: World,
        request: NeutralRequest,
        request_id: str,
        plan: Plan,
        forward: tuple[tuple[bytes, bytes], ...],
    ) -> None:
        clock = world.clock
        self._world = world
        self._now = clock.now
        self._request = request
        self._forward = forward
        self._handle: Handle | None = None
        self._armed_at: Instant = 0.0
        self.request_id = request_id
        self.plan = plan
        self.started = now = clock.now()
        self.machine = Failover(plan, now, stream=request.stream, chance=world.chance)
        self.mailbox = Mailbox(world.loop)
        self.attempt: Attempt | None = None  # the running one, or the winner
        self.gave_up: GiveUp | None = None
        self.failed: Attempt | None = None  # the last one that failed, with what it was answered
        self.tried: list[Tried] = []
        self.ended: list[AttemptEnded] = []  # every outcome, the winner's too
        self.refusals: list[tuple[Skipped, Unavailable]] = []

    async def run(self) -> Attempt | None:
        """Walk until an attempt commits (it is returned, still open) or the walk is over."""
        machine = self.machine
        self._obey(machine.on(_BEGIN, self._now()))
        while machine.phase is not Phase.COMMITTED and self.gave_up is None:
            self.arm(machine.wake_at)
            item = await self.mailbox.take()
            event = self._event(item)
            if event is not None:
                actions = machine.on(event, self._now())
                if actions:
                    self._obey(actions)
        return self.attempt if self.gave_up is None else None

    def caller_left(self) -> None:
        """The caller closed its connection (called from the loop)."""
        self.mailbox.put(Item(Word.GONE))

    def finish(self, fault: Fault | None) -> None:
        """Record the running attempt's one outcome and give back what it holds."""
        attempt, self.attempt = self.attempt, None
        if attempt is None:
            return
        if fault is not None:
            attempt.close()
        now = self._now()
        blamed = self._world.health.settle(
            attempt.hold, attempt.candidate, self._chargeable(fault), now
        )
        first = attempt.first_token_at
        record = AttemptEnded(
            request_id=self.request_id,
            pool=self.plan.label,
            deployment=attempt.candidate.deployment,
            provider=attempt.candidate.provider,
            kind=None if fault is None else fault.kind,
            status=attempt.status,
            timer=None if fault is None else fault.timer,
            detail="" if fault is None else fault.detail,
            duration_s=now - attempt.started,
            first_token_s=None if first is None else first - attempt.started,
            blamed=blamed,
        )
        self.ended.append(record)
        if fault is not None:
            self.failed = attempt
            self.tried.append(Tried(record, attempt.route.provider.display_name, fault))
        self._world.observer.observe(record)

    def close(self) -> None:
        """The request is over, however it came to that: nothing may be left."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self.attempt is not None:
            self.finish(_GONE)

    def ending(self) -> Ending:
        """What the final error may tell."""
        now = self._now()
        resting = tuple(self._world.health.unavailable(c, now) for c in self.plan.candidates)
        return Ending(
            self.plan,
            tuple(self.tried),
            tuple(self.refusals),
            resting,
            self.machine.failovers,
            now,
            self._world.clock.wall(),
        )

    def _chargeable(self, fault: Fault | None) -> Fault | None:
        """With failover off a 429 is the caller's to handle: it moves nothing."""
        if fault is None or self.plan.policy.on_rate_limit:
            return fault
        return _GONE if fault.kind is FaultKind.PROVIDER_RATE_LIMITED else fault

    def _event(self, item: Item) -> Event | None:
        """The machine's word for what is in the mailbox; None: it concerns nobody any more."""
        if item.word is Word.GONE:
            return CallerLeft()
        if item.word is Word.TIMER:
            return TimerFired(self._others_usable())
        attempt = self.attempt
        if attempt is None or attempt.number != item.source:
            return None
        index = self.machine.candidate
        if item.word is Word.HEAD:
            return HeadArrived(index)
        if item.word is Word.COMMITTED:
            if attempt.reader is not None:
                attempt.hold.first_token(self._now())
            return Committed(index)
        if item.word is Word.FAILED:
            assert item.fault is not None
            self.finish(item.fault)
            return Failed(index, item.fault, self._others_usable())
        return None  # DATA and ENDED follow a commit: the relay reads them

    def _obey(self, actions: list[Action]) -> None:
        machine = self.machine
        while actions:
            action, *actions = actions
            match action:
                case Try():
                    event = self._try(action)
                    actions = machine.on(event, self._now())  # a Try is always the last
                case Cut():
                    self.finish(action.fault)
                case GiveUp():
                    self.gave_up = action
                    if action.reason is GiveUpReason.CALLER_GONE:
                        self.note("caller_gone", phase="before_commit", blamed="none")
        if machine.phase is Phase.WAITING:
            self._note_wait()

    def _try(self, action: Try) -> Event:
        now = self._now()
        index = action.candidate
        candidate = self.plan.candidates[index]
        hold = self._world.health.take(candidate, now, ignoring_throttle=action.slept_for_it)
        if isinstance(hold, Unavailable):
            skipped = Skipped(candidate.deployment, hold.reason)
            self.refusals.append((skipped, hold))
            self.note(
                "candidate_skipped",
                deployment=candidate.deployment,
                provider=candidate.provider,
                model=self.plan.asked,
                reason=hold.reason.value,
            )
            return Refused(index)
        if self.tried and index != self.machine.candidate:
            self._tell_failover()
        self._dispatch(candidate, hold)
        return Dispatched(index, self._request.stream and self._others_usable(index))

    def _dispatch(self, candidate: Candidate, hold: Hold) -> None:
        request = self._request
        route = self._world.snapshot.routes[candidate.deployment]
        dialect = route.dialect
        self.attempt = attempt = Attempt(
            len(self.ended),
            candidate,
            route,
            hold,
            dialect.reader(request) if request.stream else None,
            self.mailbox,
            self._world.clock,
            answer_bytes_max=self.plan.policy.answer_bytes_max,
        )
        attempt.exchange = self._world.upstream.dispatch(
            UpstreamCall(
                origin=route.origin,
                method=b"POST",
                target=route.target,
                headers=route.headers + self._forward if self._forward else route.headers,
                body=dialect.encode(request, route.deployment.upstream_model),
                connect_timeout_s=candidate.policy.timeouts.connect_s,
            ),
            attempt,
        )
        self._world.observer.observe(
            AttemptStarted(
                self.request_id, self.plan.label, candidate.deployment, candidate.provider
            )
        )

    def _others_usable(self, index: int | None = None) -> bool:
        """Whether a candidate after this one (default: after the current) could be taken now."""
        start = (self.machine.candidate if index is None else index) + 1
        now = self._now()
        candidates = self.plan.candidates
        return any(
            self._world.health.unavailable(candidates[i], now) is None
            for i in range(start, len(candidates))
        )

    def arm(self, when: Instant | None) -> None:
        """Have a TIMER word in the mailbox at `when`, or earlier: one timer a request."""
        if when is None or (self._handle is not None and self._armed_at <= when):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._armed_at = when
        self._handle = self._world.clock.call_at(when, self._timer_fired)

    def _timer_fired(self) -> None:
        self._handle = None
        self.mailbox.put(_TIMER)

    def _tell_failover(self) -> None:
        last = self.tried[-1].record
        assert last.kind is not None
        self._world.observer.observe(
            FailoverTriggered(
                self.request_id,
                self.plan.label,
                len(self.ended),
                last.deployment,
                last.provider,
                last.status,
                last.kind,
            )
        )

    def _note_wait(self) -> None:
        until = self.machine.wake_at
        assert until is not None
        wait_ms = round((until - self._now()) * 1000)
        self.note("failover_backoff", backoff_ms=wait_ms, attempt=self.machine.attempts)

    def note(self, event: str, **fields: str | int | float | None) -> None:
        """A debug fact."""
        self._world.observer.observe(Noted(event, self.request_id, fields))
