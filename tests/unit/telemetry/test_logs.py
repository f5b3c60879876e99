"""The log as an observer: which facts become lines, and that no secret becomes one."""

import msgspec
import pytest
import structlog
from tests.unit.telemetry.records import (
    EVERY_RECORD,
    FAILOVER,
    NOTED,
    OWN_ID,
    attempt,
    moved,
    rescued,
)
from tests.unit.telemetry.streams import Broken, Kept, Timers

from outlast.telemetry.logs import Log, wants_colours, wants_text
from outlast.telemetry.redactor import Redactor
from outlast.telemetry.writer import LineWriter

WALL = 1_700_000_000.0
CANARY = "canary-9f8e7d"


def _crash(error: Exception) -> None:
    raise error


class Probe:
    """A log whose lines are read back."""

    def __init__(self, **options) -> None:
        self.stream = Kept()
        self.writer = LineWriter(self.stream, Timers())
        options.setdefault("text", False)
        self.log = Log(self.writer, Redactor([CANARY]), lambda: WALL, **options)

    def raw(self) -> bytes:
        self.writer.close()
        return self.stream.data

    def lines(self) -> list[dict[str, object]]:
        return [msgspec.json.decode(line) for line in self.raw().splitlines()]


def test_a_request_leaves_one_line():
    probe = Probe()
    probe.log.observe(attempt("a"))
    probe.log.observe(rescued())
    (line,) = probe.lines()
    assert line["event"] == "request"
    assert line["attempts"] == "a:timeout@4012ms b:ok"


def test_a_failover_is_always_a_line():
    probe = Probe()
    probe.log.observe(FAILOVER)
    assert probe.lines() == [
        {
            "timestamp": "2023-11-14T22:13:20.000Z",
            "level": "warning",
            "event": "failover_triggered",
            "request_id": OWN_ID,
            "pool": "fast",
            "attempt": 1,
            "provider": "p-a",
            "deployment": "a",
            "status": 503,
            "reason": "provider_5xx",
        }
    ]


@pytest.mark.parametrize(
    ("after", "level"), [("open", "warning"), ("half_open", "info"), ("closed", "info")]
)
def test_a_breaker_that_moves_is_always_a_line(after, level):
    probe = Probe()
    probe.log.observe(moved(after))
    (line,) = probe.lines()
    assert line["event"] == "breaker_transition"
    assert (line["from"], line["to"], line["level"]) == ("closed", after, level)
    assert line["consecutive_failures"] == 5


def test_debug_facts_are_lines_only_in_debug():
    quiet, loud = Probe(), Probe(debug=True)
    quiet.log.observe(NOTED)
    loud.log.observe(NOTED)
    assert quiet.lines() == []
    (line,) = loud.lines()
    assert line["event"] == "candidate_skipped"
    assert (line["deployment"], line["reason"]) == ("c", "resting")


def test_a_fact_cannot_take_the_place_of_a_lines_own_names():
    probe = Probe(debug=True)
    clash = {"event": "x", "request_id": "y", "level": "z", "timestamp": "t", "kept": 1}
    probe.log.observe(msgspec.structs.replace(NOTED, fields=clash))
    (line,) = probe.lines()
    assert line["event"] == "candidate_skipped"
    assert line["request_id"] == OWN_ID
    assert line["kept"] == 1


def test_lines_of_both_kinds_stay_in_order():
    probe = Probe()
    for record in (FAILOVER, rescued(), moved()):
        probe.log.observe(record)
    events = [line["event"] for line in probe.lines()]
    assert events == ["failover_triggered", "request", "breaker_transition"]


@pytest.mark.parametrize("text", [True, False])
def test_a_planted_secret_reaches_no_line(text):
    probe = Probe(text=text, debug=True)
    probe.log.observe(rescued(model=CANARY, request_id=CANARY, detail=f"to {CANARY}"))
    probe.log.observe(msgspec.structs.replace(NOTED, fields={"why": CANARY}))
    probe.log.state.info("started", listening=f"http://u:{CANARY}@host", nested={"k": [CANARY]})
    try:
        int(CANARY)
    except ValueError:
        probe.log.state.exception("crashed", request_id=CANARY)
    raw = probe.raw()
    assert raw.count(b"\n") == 4
    assert CANARY.encode() not in raw


def test_an_exception_is_told_by_type_and_place_without_its_words():
    probe = Probe()
    error = RuntimeError("the caller's prompt")
    error.__cause__ = KeyError("the caller's prompt")
    try:
        _crash(error)
    except RuntimeError as caught:
        probe.log.state.error("request_crashed", request_id="r", exc_info=caught)
    (line,) = probe.lines()
    assert (line["exception"], line["cause"]) == ("RuntimeError", "KeyError")
    assert "test_logs.py" in str(line["frames"])
    assert "prompt" not in str(line)


def test_text_lines_are_text():
    probe = Probe(text=True)
    probe.log.observe(rescued())
    raw = probe.raw()
    assert raw.startswith(b"22:13:20 info    request ")
    assert b'attempts="a:timeout@4012ms b:ok"' in raw
    assert b"\x1b" not in raw


def test_a_broken_stream_never_raises_into_the_engine():
    writer = LineWriter(Broken())
    log = Log(writer, Redactor(), lambda: WALL, text=False, debug=True)
    for record in EVERY_RECORD:
        log.observe(record)
    writer.close()
    assert writer.dropped == 7


def test_structlogs_own_configuration_is_left_alone():
    before = structlog.get_config()["processors"]
    Probe().writer.close()
    assert structlog.get_config()["processors"] is before


@pytest.mark.parametrize(
    ("log_format", "terminal", "text"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("json", True, False),
        ("text", False, True),
    ],
)
def test_the_format_follows_the_stream_unless_it_is_named(log_format, terminal, text):
    assert wants_text(log_format, terminal=terminal) is text


def test_no_color_is_honoured_when_it_says_something():
    assert wants_colours({}, terminal=True)
    assert wants_colours({"NO_COLOR": ""}, terminal=True)
    assert not wants_colours({"NO_COLOR": "1"}, terminal=True)
    assert not wants_colours({}, terminal=False)
