"""Strict reading of what a caller received."""

import pytest

from outlast.sim.answers import (
    DONE,
    Asked,
    Identity,
    completion,
    content_chunks,
    finish_chunk,
    pieces,
    role_chunk,
    usage_chunks,
)
from outlast.sim.transcripts import Claim, read_stream, read_whole

WHO = Identity("sim-a", 2, 4)
OTHER = Identity("sim-b", 2, 4)
ASKED = Asked("m", stream=True, usage=True)
TEXT = "".join(pieces(WHO))
WORDS = role_chunk(WHO, ASKED) + b"".join(content_chunks(WHO, ASKED))
STOP = finish_chunk(WHO, ASKED)


def test_a_good_stream_reads_as_whole():
    reading = read_stream(WORDS + STOP + usage_chunks(WHO, ASKED)[0] + DONE)
    assert (reading.claim, reading.text, reading.problem) == (Claim.WHOLE, TEXT, None)
    assert reading.answer_id == WHO.answer_id
    assert reading.usage_events == 1
    assert reading.whose() == WHO
    assert reading.begins(WHO)
    assert not reading.begins(OTHER)


def test_a_stream_that_says_so_reads_as_broken():
    half = role_chunk(WHO, ASKED) + content_chunks(WHO, ASKED)[0]
    reading = read_stream(half + finish_chunk(WHO, ASKED, "error") + DONE)
    assert (reading.claim, reading.problem) == (Claim.BROKEN, None)
    assert reading.begins(WHO)
    assert reading.whose() is None


def test_a_stream_that_just_stops_reads_as_cut():
    assert read_stream(WORDS + STOP).claim is Claim.CUT
    assert read_stream(WORDS).claim is Claim.CUT
    assert read_stream(b"").claim is Claim.CUT


def test_a_stream_that_says_nothing_reads_as_empty():
    assert read_stream(DONE).claim is Claim.EMPTY


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (WORDS + STOP + DONE + DONE, "follows the terminal"),
        (WORDS + STOP + STOP + DONE, "after the finish reason"),
        (WORDS + DONE, "finish reason None"),
        (WORDS + finish_chunk(WHO, ASKED, "length") + DONE, "finish reason length"),
        (WORDS + STOP[:-1], "half an event"),
        (WORDS + b"data: {nope}\n\n" + STOP + DONE, "does not parse"),
        (WORDS + b": comment\n\n" + STOP + DONE, "does not parse"),
        (WORDS + content_chunks(OTHER, ASKED)[1] + STOP + DONE, "two answers"),
    ],
)
def test_nothing_is_forgiven(body, problem):
    reading = read_stream(body)
    assert reading.problem is not None
    assert problem in reading.problem


def test_a_whole_answer_reads_as_whole():
    reading = read_whole(completion(WHO, Asked("m")))
    assert (reading.claim, reading.text, reading.problem) == (Claim.WHOLE, TEXT, None)
    assert reading.whose() == WHO


@pytest.mark.parametrize("body", [b"", b"{}", b'{"choices":[]}', completion(WHO, ASKED)[:-1]])
def test_a_whole_answer_that_is_none_has_a_problem(body):
    assert read_whole(body).problem is not None
