"""The text of an answer betrays cutting, mixing and doubling."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlast.sim import answers
from outlast.sim.answers import Asked, Identity, pieces, read_text

WHO = Identity("sim-a", 3, 5)
TEXT = "".join(pieces(WHO))
OTHER = "".join(pieces(Identity("sim-b", 4, 5)))


def test_a_whole_text_names_its_provider_call_and_size():
    assert read_text(TEXT) == WHO


@pytest.mark.parametrize("cut", range(len(TEXT)))
def test_every_cut_text_is_refused(cut):
    assert read_text(TEXT[:cut]) is None


@given(st.integers(1, 6), st.integers(1, 6))
def test_every_splice_of_two_answers_is_refused(taken, skipped):
    spliced = "".join(pieces(WHO)[:taken] + pieces(Identity("sim-b", 4, 5))[skipped:])
    assert read_text(spliced) is None


@pytest.mark.parametrize(
    "text",
    [
        TEXT + TEXT,
        OTHER + TEXT,
        TEXT.replace(" w2", ""),
        TEXT.replace(" w2", " w2 w2"),
        TEXT.replace(" w1 w2", " w2 w1"),
        TEXT + " and more",
    ],
    ids=["doubled", "two answers", "word lost", "word doubled", "swapped", "tail"],
)
def test_a_text_that_is_not_exactly_one_answer_is_refused(text):
    assert read_text(text) is None


def test_a_completion_carries_the_text_its_id_and_the_usage():
    body = json.loads(answers.completion(WHO, Asked("m")))
    assert read_text(body["choices"][0]["message"]["content"]) == WHO
    assert body["id"] == "chatcmpl-sim-a-3"
    assert body["model"] == "m"
    assert body["usage"]["completion_tokens"] == 7


def test_the_pieces_of_a_stream_make_the_whole_text():
    chunks = [json.loads(c[6:]) for c in answers.content_chunks(WHO, Asked("m", stream=True))]
    assert "".join(c["choices"][0]["delta"]["content"] for c in chunks) == TEXT
    assert {c["id"] for c in chunks} == {WHO.answer_id}


def test_the_usage_chunk_comes_only_when_asked_for():
    assert answers.usage_chunks(WHO, Asked("m", stream=True)) == []
    (chunk,) = answers.usage_chunks(WHO, Asked("m", stream=True, usage=True))
    assert json.loads(chunk[6:])["choices"] == []
    assert json.loads(chunk[6:])["usage"]["total_tokens"] == 14
