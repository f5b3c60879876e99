"""What must be true of every story, whatever went wrong in it.

Safety (while providers fail): S1 no splice and no mix · S2 one live attempt at a time (reported
under S8) · S3 probes of a half-open breaker · S4 the plan's bounds · S5 an answer by the deadline ·
S6 everything given back · S7 nobody is blamed for another's fault · S8 one outcome per attempt and
one record per request · S9 nothing cut is presented as whole. Liveness (once they are well): L1
breakers close · L2 a well provider means an answer. S10 (the same seed, the same story) and L3 (no
deadlock) show in the playing itself.

Each checker yields sentences about what it found; none is a good story.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from msgspec import Struct

from outlast.model.clock import Instant
from outlast.model.fault import FaultKind
from outlast.model.ids import DeploymentName
from outlast.model.policy import BreakerPolicy
from outlast.model.records import (
    AttemptEnded,
    AttemptStarted,
    BreakerMoved,
    RequestEnded,
)
from outlast.routing.resolve import Index, Target
from outlast.sim.calamities import CALAMITIES, RETRY_AFTER_S, Harm
from outlast.sim.callers import Caller
from outlast.sim.story import Story
from outlast.sim.transcripts import Claim, Reading, read_stream, read_whole
from outlast.sim.world import Visit

EPSILON_S = 0.001
"""Rounding of instants; nothing in a world is decided in less."""

_NOBODY = frozenset({FaultKind.CALLER_GONE, FaultKind.DEADLINE, FaultKind.SUPERSEDED})
_BLAMELESS = _NOBODY | {FaultKind.CALLER_ERROR, FaultKind.EMPTY_RESPONSE}


class Attempt(Struct):
    """One attempt pieced together. `call` is its number at its provider."""

    request: str
    deployment: str
    provider: str
    call: int
    started_at: Instant
    ended: AttemptEnded | None = None
    ended_at: Instant | None = None

    def decided_by(self, at: Instant) -> bool:
        """Whether its first token had come, or its end, when it was `at`."""
        if self.ended is None or self.ended_at is None:
            return False
        first_s = self.ended.first_token_s
        return (self.ended_at if first_s is None else self.started_at + first_s) <= at


class Evidence(Struct):
    """A story with its records sorted by whom they concern."""

    story: Story
    attempts: list[Attempt]
    by_request: dict[str, list[Attempt]]
    ended: dict[str, list[RequestEnded]]
    index: Index
    oddities: list[str]

    def target(self, visit: Visit) -> Target:
        target = self.index.find(visit.target)
        assert target is not None
        return target

    def breaker(self, deployment: str) -> BreakerPolicy:
        deployments = self.story.world.topology.deployments
        return deployments[DeploymentName(deployment)].policy.breaker

    def passes_on_nothing(self, attempt: Attempt) -> bool:
        """Whether its first event of any kind commits, so that an empty stream may pass."""
        deployment = self.story.world.topology.deployments[DeploymentName(attempt.deployment)]
        return deployment.policy.timeouts.first_token_s is None

    def of(self, caller: Caller) -> list[Attempt]:
        return self.by_request.get(_name(caller), [])


def _name(caller: Caller) -> str:
    return f"r{caller.visit.number}"


def violations(story: Story) -> list[str]:
    """Everything in a story that must not be."""
    evidence = gather(story)
    return [f"{name} {what}" for name, check in CHECKS for what in check(evidence)]


def gather(story: Story) -> Evidence:
    """Sort the records. What does not fit together is an oddity, which S8 reports."""
    evidence = Evidence(story, [], {}, {}, Index(story.world.topology), [])
    calls: Counter[str] = Counter()
    running: dict[str, Attempt] = {}
    for at, record in story.records:
        match record:
            case AttemptStarted():
                if record.request_id in running:
                    evidence.oddities.append(f"{record.request_id}: two attempts at once")
                number = calls[record.provider]
                calls[record.provider] += 1
                attempt = Attempt(record.request_id, record.deployment, record.provider, number, at)
                running[record.request_id] = attempt
                evidence.attempts.append(attempt)
                evidence.by_request.setdefault(record.request_id, []).append(attempt)
            case AttemptEnded():
                begun = running.pop(record.request_id, None)
                if begun is None or begun.deployment != record.deployment:
                    evidence.oddities.append(f"{record.request_id}: an outcome without an attempt")
                else:
                    begun.ended = record
                    begun.ended_at = at
            case RequestEnded():
                evidence.ended.setdefault(record.request_id, []).append(record)
            case _:
                pass
    evidence.oddities += [f"{name}: an attempt without an outcome" for name in running]
    return evidence


def _read(caller: Caller) -> Reading | None:
    """What the caller got of an answer; None: no answer (an error, or nothing at all)."""
    if caller.status != 200 or caller.error is not None:
        return None
    return read_stream(caller.body) if caller.streamed else read_whole(caller.body)


def check_answers(evidence: Evidence) -> Iterator[str]:
    """S1, S9: whole and one provider's, or honestly broken; never anything between."""
    for caller in evidence.story.callers:
        name = _name(caller)
        yield from (f"{name}: {misuse}" for misuse in caller.misuse)
        if caller.stayed and caller.status is None:
            yield f"{name}: no answer at all"
        reading = _read(caller)
        if reading is not None:
            yield from (f"{name}: {what}" for what in _judge_reading(evidence, caller, reading))


def _judge_reading(evidence: Evidence, caller: Caller, reading: Reading) -> Iterator[str]:
    if reading.problem is not None:
        yield reading.problem
        return
    last = evidence.of(caller)[-1]
    if reading.claim is Claim.EMPTY and not evidence.passes_on_nothing(last):
        yield "an answer without a word, though its first token was waited for"
    cast = next(c for c in evidence.story.world.casts if c.deployment == last.deployment)
    who = cast.voice.identity(last.call)
    if caller.headers.get(b"x-outlast-deployment") != last.deployment.encode():
        yield "the answer does not name the deployment that gave it"
    if reading.answer_id not in {None, who.answer_id} or not reading.begins(who):
        yield f"the text is not the one of {who.answer_id}"
    if reading.claim is Claim.WHOLE:
        if reading.whose() != who:
            yield "a text that is not whole is presented as whole"
        wanted = int(caller.visit.usage and caller.visit.stream)
        if caller.visit.stream and reading.usage_events != wanted:
            yield f"{reading.usage_events} usage events, {wanted} wanted"
    if reading.claim is Claim.CUT and caller.stayed and not caller.aborted:
        yield "a cut answer ends without a word"


def check_probes(evidence: Evidence) -> Iterator[str]:
    """S3: no more undecided probes of a half-open breaker than its policy allows.

    A probe is decided by its first token: from then on the breaker may ask the next.
    """
    half_open: dict[str, list[Attempt]] = {}
    attempts = iter(evidence.attempts)
    for at, record in evidence.story.records:
        if isinstance(record, BreakerMoved):
            half_open.pop(record.deployment, None)
            if record.after == "half_open":
                half_open[record.deployment] = []
        elif isinstance(record, AttemptStarted):
            attempt = next(attempts)
            if record.deployment not in half_open:
                continue
            probes = [p for p in half_open[record.deployment] if not p.decided_by(at)]
            half_open[record.deployment] = [*probes, attempt]
            limit = evidence.breaker(record.deployment).half_open_max_calls
            if len(probes) >= limit:
                yield f"{record.deployment}: {len(probes) + 1} probes at {at:.3f}, {limit} allowed"


def check_bounds(evidence: Evidence) -> Iterator[str]:
    """S4: attempts and failovers within what the plan allows."""
    for caller in evidence.story.callers:
        target = evidence.target(caller.visit)
        policy = target.policy
        allowed = policy.max_total_attempts
        if allowed is None:
            allowed = sum(c.policy.retry.max_attempts for c in target.candidates) + 1
        attempts = evidence.of(caller)
        if len(attempts) > allowed:
            yield f"{_name(caller)}: {len(attempts)} attempts, {allowed} allowed"
        hops = sum(a.deployment != b.deployment for a, b in pairwise(attempts))
        if policy.max_failovers is not None and hops > policy.max_failovers:
            yield f"{_name(caller)}: {hops} failovers, {policy.max_failovers} allowed"
        per_candidate = Counter(attempt.deployment for attempt in attempts)
        for candidate in target.candidates:
            tries = per_candidate[candidate.deployment]
            if tries > candidate.policy.retry.max_attempts:
                yield f"{_name(caller)}: {tries} tries of {candidate.deployment}"


def check_deadline(evidence: Evidence) -> Iterator[str]:
    """S5: the first byte, or the error, by the deadline."""
    for caller in evidence.story.callers:
        deadline_s = evidence.target(caller.visit).policy.deadline_s
        if caller.answered_at is None:
            continue
        late_s = caller.answered_at - caller.visit.at_s - deadline_s
        if late_s > EPSILON_S:
            yield f"{_name(caller)}: answered {late_s:.3f} s after its deadline"


def check_leaks(evidence: Evidence) -> Iterator[str]:
    """S6: every exchange, timer and slot is given back, at once when the caller leaves."""
    story = evidence.story
    for caller in story.callers:
        if caller.left_at is not None and caller.over_at is not None:
            late_s = caller.over_at - caller.left_at
            if late_s > EPSILON_S:
                yield f"{_name(caller)}: worked on for {late_s:.3f} s after its caller had left"
    if story.open_exchanges:
        yield f"{story.open_exchanges} exchanges are open"
    if story.timers:
        yield f"{story.timers} timers are set"
    for deployment, (_, held) in story.states.items():
        if held:
            yield f"{deployment}: {held} slots are held"


def check_blame(evidence: Evidence) -> Iterator[str]:
    """S7: outcomes say what really happened, and only real failures open a breaker."""
    for attempt in evidence.attempts:
        if attempt.ended is not None:
            yield from _judge_outcome(evidence, attempt, attempt.ended)
    yield from _check_openings(evidence.story)


def _judge_outcome(evidence: Evidence, attempt: Attempt, ended: AttemptEnded) -> Iterator[str]:
    story = evidence.story
    kind = ended.kind
    where = f"{attempt.request} at {attempt.deployment} call {attempt.call}"
    if ended.blamed and (kind is None or kind in _BLAMELESS):
        yield f"{where}: blamed for {'a success' if kind is None else kind.value}"
    met = (attempt.provider, attempt.call)
    if met not in story.suffered:
        yield f"{where}: no provider saw it"
        return
    name = story.suffered[met]
    if kind in _NOBODY:
        return
    stream = story.callers[int(attempt.request[1:])].visit.stream
    harm = Harm.NONE if name is None else _harm(name, stream=stream)
    match harm:
        case Harm.NONE:
            late = kind is FaultKind.TIMEOUT and name == "slow_first_token"
            if kind is not None and not late:
                yield f"{where}: {kind.value}, though it was {name or 'well'}"
        case Harm.EMPTY if kind is None and evidence.passes_on_nothing(attempt):
            return
        case Harm.BEFORE | Harm.AFTER | Harm.EMPTY:
            if kind is None or kind is FaultKind.CALLER_ERROR:
                yield f"{where}: {name} counts as {'success' if kind is None else kind.value}"
        case Harm.CALLER:
            if kind is not FaultKind.CALLER_ERROR:
                yield f"{where}: the caller's mistake counts as {kind}"


def _harm(name: str, *, stream: bool) -> Harm:
    calamity = CALAMITIES[name]
    return calamity.stream if stream else calamity.whole


def _check_openings(story: Story) -> Iterator[str]:
    opened: dict[str, Instant] = {}
    for at, record in story.records:
        if isinstance(record, BreakerMoved) and record.after == "open":
            opened[record.deployment] = at
        elif isinstance(record, AttemptEnded):
            when = opened.pop(record.deployment, None)
            if when is not None and (when != at or not record.blamed):
                yield f"{record.deployment}: its breaker opened at {when:.3f} without a failure"


def check_records(evidence: Evidence) -> Iterator[str]:
    """S8: one outcome per attempt, one record per request, and they agree."""
    story = evidence.story
    yield from evidence.oddities
    if len(story.suffered) != len(evidence.attempts):
        yield f"{len(story.suffered)} upstream calls, {len(evidence.attempts)} attempts"
    for caller in story.callers:
        records = evidence.ended.get(_name(caller), [])
        if len(records) != 1:
            yield f"{_name(caller)}: {len(records)} records of its end"
            continue
        told = list(records[0].attempts)
        if told != [attempt.ended for attempt in evidence.of(caller)]:
            yield f"{_name(caller)}: its record tells other attempts than were made"
        if caller.stayed and records[0].status != caller.status:
            yield f"{_name(caller)}: recorded {records[0].status}, answered {caller.status}"
        if caller.stayed and caller.status is not None:
            yield from _check_outcome(caller, records[0])


def _check_outcome(caller: Caller, record: RequestEnded) -> Iterator[str]:
    reading = _read(caller)
    well = reading is not None and reading.claim in {Claim.WHOLE, Claim.EMPTY}
    if (record.outcome == "ok") != well:
        yield f"{_name(caller)}: recorded as {record.outcome}"


def check_recovery(evidence: Evidence) -> Iterator[str]:
    """L1: with the faults over and a rest's length later, traffic closes every breaker."""
    for deployment, (state, _) in evidence.story.states.items():
        if evidence.breaker(deployment).enabled and state != "closed":
            yield f"{deployment}: {state} at the end"
    for caller in evidence.story.callers:
        if caller.visit.at_s >= evidence.story.world.calm_from_s:
            reading = _read(caller)
            if reading is None or reading.claim is not Claim.WHOLE:
                yield f"{_name(caller)}: no whole answer though all are well"
            if len(evidence.of(caller)) != 1:
                yield f"{_name(caller)}: {len(evidence.of(caller))} attempts though all are well"


def check_availability(evidence: Evidence) -> Iterator[str]:
    """L2: with a well provider and patience enough there is an answer."""
    for caller in evidence.story.callers:
        if caller.stayed and caller.error is not None and _must_succeed(evidence, caller):
            yield f"{_name(caller)}: {caller.error.gateway_code} beside a well provider"


def _must_succeed(evidence: Evidence, caller: Caller) -> bool:
    world = evidence.story.world
    target = evidence.target(caller.visit)
    policy = target.policy
    unbounded = policy.max_failovers is None and policy.max_total_attempts is None
    if not unbounded or not policy.on_rate_limit:
        return False
    well = {cast.deployment for cast in world.casts if cast.always_well}
    free = {
        c.deployment
        for c in target.candidates
        if c.deployment in well and world.topology.deployments[c.deployment].max_concurrent is None
    }
    if not free:
        return False
    worst_s = 2.0  # the well one's own first token, with room
    for candidate in target.candidates:
        timeouts, retry = candidate.policy.timeouts, candidate.policy.retry
        limits = (timeouts.first_token_s, timeouts.first_token_last_s)
        if caller.visit.stream and None in limits:
            return False  # nothing bounds a provider that is silent
        limit_s = max(timeouts.request_s, *(limit or 0.0 for limit in limits))
        pause_s = max(RETRY_AFTER_S, retry.backoff.max_delay_s)
        worst_s += retry.max_attempts * (limit_s + pause_s)
    return worst_s < policy.deadline_s


Check = Callable[[Evidence], Iterator[str]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("S1/S9", check_answers),
    ("S3", check_probes),
    ("S4", check_bounds),
    ("S5", check_deadline),
    ("S6", check_leaks),
    ("S7", check_blame),
    ("S8", check_records),
    ("L1", check_recovery),
    ("L2", check_availability),
)
