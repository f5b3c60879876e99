"""How lines are spelled."""

import msgspec
from tests.unit.telemetry.records import OWN_ID, failed, rescued

from outlast.telemetry.lines import json_line, request_line, text_line, timestamp_text
from outlast.telemetry.redactor import Redactor

WALL = 1_700_000_000.1239


def test_a_time_is_utc_with_milliseconds():
    assert timestamp_text(WALL) == "2023-11-14T22:13:20.123Z"


def test_the_canonical_line_says_how_the_request_went():
    line = msgspec.json.decode(json_line(request_line(rescued(), WALL, Redactor())))
    assert line == {
        "timestamp": "2023-11-14T22:13:20.123Z",
        "level": "info",
        "event": "request",
        "request_id": OWN_ID,
        "pool": "fast",
        "model": "fast",
        "dialect": "openai",
        "stream": True,
        "outcome": "ok",
        "status": 200,
        "duration_ms": 4500.0,
        "attempts": "a:timeout@4012ms b:ok",
        "failovers": 1,
        "saved": True,
        "ttft_ms": 4100.0,
        "input_tokens": 12,
        "output_tokens": 34,
        "cached_tokens": 5,
        "skipped": "c:resting",
    }


def test_what_is_not_known_is_left_out():
    line = msgspec.json.decode(json_line(request_line(failed(), WALL, Redactor())))
    assert line["level"] == "warning"
    assert line["code"] == "all_routes_failed"
    assert {"ttft_ms", "input_tokens", "attempts", "skipped", "detail"}.isdisjoint(line)


def test_our_own_failure_is_an_error_line():
    assert request_line(failed("error", 500), WALL, Redactor()).level == "error"


def test_free_text_goes_through_the_redactor():
    redactor = Redactor(["canary-1"])
    record = rescued(model="canary-1", request_id="canary-1", detail="reset by canary-1")
    line = request_line(record, WALL, redactor)
    assert b"canary" not in json_line(line)
    assert line.detail == "a: reset by [redacted]"


def test_a_text_line_is_readable():
    fields = {"timestamp": timestamp_text(WALL), "level": "info", "event": "started"}
    line = text_line({**fields, "at": "127.0.0.1:80", "none": None}, colours=False)
    assert line == b"22:13:20 info    started at=127.0.0.1:80\n"


def test_a_text_line_cannot_be_forged_or_steer_a_terminal():
    hostile = 'x\n22:13:20 error \x1b[2J "q" \u2028 a=b'
    line = text_line({"event": hostile, "model": hostile, "list": [hostile]}, colours=False)
    assert line.count(b"\n") == 1
    assert b"\x1b" not in line
    assert "\u2028".encode() not in line


def test_words_with_spaces_and_empty_ones_are_quoted():
    line = text_line({"event": "e", "a": "b c", "d": "", "n": 3}, colours=False)
    assert line.endswith(b'e a="b c" d="" n=3\n')


def test_colours_only_where_asked():
    fields = {"level": "error", "event": "e"}
    assert b"\x1b[31m" in text_line(fields, colours=True)
    assert b"\x1b" not in text_line(fields, colours=False)
