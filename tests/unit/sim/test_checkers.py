"""Each checker finds the fault that it is for: a good story is doctored, and it must say so."""

import functools

import pytest
from msgspec.structs import replace

from outlast.errors import GatewayError
from outlast.model.fault import FaultKind
from outlast.model.records import AttemptEnded, AttemptStarted, BreakerMoved, RequestEnded
from outlast.sim.checkers import violations
from outlast.sim.story import play
from outlast.sim.world import build_world

SEED = 3


@pytest.fixture
def story():
    return play(build_world(SEED))


def found(story):
    """Names of the checkers that object."""
    return {line.split(" ", 1)[0] for line in violations(story)}


def whole_answer(story):
    return next(c for c in story.callers if c.status == 200 and not c.streamed and c.stayed)


def whole_stream(story):
    return next(c for c in story.callers if c.streamed and c.stayed and b'"stop"' in c.body)


def doctor(story, change):
    """Replace every record by what `change` makes of it."""
    story.records[:] = [(at, change(record)) for at, record in story.records]


def once(kind, change, matches=lambda _record: True):
    """A change of the first record of `kind` that matches."""
    done: list[object] = []

    def apply(record):
        if done or not isinstance(record, kind) or not matches(record):
            return record
        done.append(record)
        return change(record)

    return apply


def test_a_good_story_is_good(story):
    assert found(story) == set()


def test_a_cut_whole_answer_is_found(story):
    caller = whole_answer(story)
    caller.parts = [caller.body[:-20]]
    assert "S1/S9" in found(story)


def test_a_shortened_text_that_still_parses_is_found(story):
    caller = whole_answer(story)
    caller.parts = [caller.body.replace(b" w2", b"")]
    assert "S1/S9" in found(story)


def test_a_stream_without_its_end_is_found(story):
    caller = whole_stream(story)
    caller.parts = [caller.body.removesuffix(b"data: [DONE]\n\n")]
    assert found(story) == {"S1/S9", "S8"}


def test_a_lost_event_is_found(story):
    caller = whole_stream(story)
    events = caller.body.split(b"\n\n")
    caller.parts = [b"\n\n".join(events[:2] + events[3:])]
    assert "S1/S9" in found(story)


def test_another_provider_s_event_is_found(story):
    caller = whole_stream(story)
    head, middle, tail = caller.body.partition(b" w2")
    spliced = head.rsplit(b"chatcmpl-", 1)
    caller.parts = [b"chatcmpl-other-".join(spliced) + middle + tail]
    assert "S1/S9" in found(story)


def test_a_second_answer_and_a_missing_one_are_found(story):
    whole_answer(story).misuse.append("a second answer")
    assert found(story) == {"S1/S9"}
    story = play(build_world(SEED))
    caller = whole_answer(story)
    caller.status, caller.parts = None, []
    assert "S1/S9" in found(story)


def test_an_answer_under_the_wrong_name_is_found(story):
    whole_answer(story).headers[b"x-outlast-deployment"] = b"somebody/else"
    assert found(story) == {"S1/S9"}


def test_a_late_answer_is_found(story):
    caller = whole_answer(story)
    caller.answered_at = caller.visit.at_s + 1_000.0
    assert found(story) == {"S5"}


@pytest.mark.parametrize(
    "leak",
    [
        {"open_exchanges": 1},
        {"timers": 1},
        {"states": {"sim-a/model": ("closed", 1)}},
    ],
    ids=["exchange", "timer", "slot"],
)
def test_a_leak_is_found(story, leak):
    for name, value in leak.items():
        setattr(story, name, value)
    assert found(story) == {"S6"}


def test_work_for_a_caller_that_left_is_found(story):
    caller = next(c for c in story.callers if c.left_at is not None)
    caller.over_at = caller.left_at + 2.0
    assert found(story) == {"S6"}


def test_a_breaker_that_stays_open_is_found(story):
    for deployment in story.states:
        story.states[deployment] = ("open", 0)
    assert found(story) == {"L1"}


def test_a_blamed_success_is_found(story):
    blame = functools.partial(replace, blamed=True)
    doctor(story, once(AttemptEnded, blame, lambda r: r.kind is None))
    assert {"S7", "S8"} <= found(story)


def test_a_fault_that_counts_as_success_is_found(story):
    praise = functools.partial(replace, kind=None, blamed=False)
    doctor(
        story, once(AttemptEnded, praise, lambda r: r.kind is FaultKind.PROVIDER_5XX or r.blamed)
    )
    assert "S7" in found(story)


def test_a_breaker_that_opens_without_a_failure_is_found(story):
    at, record = next(
        (at, r) for at, r in story.records if isinstance(r, AttemptEnded) and r.kind is None
    )
    moved = BreakerMoved(record.deployment, record.provider, "closed", "open", 0)
    story.records.insert(story.records.index((at, record)), (at, moved))
    assert "S7" in found(story)


def test_too_many_probes_are_found(story):
    position, (at, record) = next(
        (i, pair) for i, pair in enumerate(story.records) if isinstance(pair[1], AttemptStarted)
    )
    half = BreakerMoved(record.deployment, record.provider, "open", "half_open", 0)
    again = [(at, replace(record, request_id=f"r{n}")) for n in (90, 91, 92)]
    story.records[position:position] = [(at, half), *again]
    assert "S3" in found(story)


def test_attempts_beyond_the_plan_are_found(story):
    position, (at, record) = next(
        (i, pair) for i, pair in enumerate(story.records) if isinstance(pair[1], AttemptStarted)
    )
    story.records[position:position] = [(at, record)] * 40
    assert {"S4", "S8"} <= found(story)


@pytest.mark.parametrize("kind", [AttemptEnded, RequestEnded])
def test_a_lost_record_is_found(story, kind):
    position = next(i for i, (_, r) in enumerate(story.records) if isinstance(r, kind))
    del story.records[position]
    assert "S8" in found(story)


def test_a_wrong_status_in_the_record_is_found(story):
    doctor(story, once(RequestEnded, functools.partial(replace, status=418)))
    assert found(story) == {"S8"}


def test_an_error_beside_a_well_provider_is_found():
    for seed in range(200):
        world = build_world(seed)
        policy = world.topology.policy
        free = [c for c in world.casts if c.always_well]
        slots = [world.topology.deployments[c.deployment].max_concurrent for c in free]
        patient = policy.deadline_s >= 240.0 and policy.on_rate_limit
        bounded = (policy.max_failovers, policy.max_total_attempts) != (None, None)
        if slots == [None] and patient and not bounded and len(world.casts) <= 2:
            break
    else:
        pytest.fail("no seed draws such a world")
    story = play(world)
    caller = whole_answer(story)
    caller.error = GatewayError(502, "all_routes_failed", "x", error_type="provider_unavailable")
    assert "L2" in found(story)


def test_a_failed_answer_in_the_calm_is_found(story):
    caller = next(c for c in story.callers if c.visit.at_s >= story.world.calm_from_s)
    caller.parts = []
    assert "L1" in found(story)
