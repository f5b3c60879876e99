"""What simulated providers script for a request."""

import json
import random

import pytest

from outlast.sim.answers import DONE, read_text
from outlast.sim.provider import DEMO, SimRequest, Voice, healthy
from outlast.sim.script import Body, End, Head, duration_s

RNG = random.Random(0)  # noqa: S311 - chance of a simulation
VOICE = Voice("sim-a", words=4, first_token_s=0.5, gap_s=0.25)


def chat(**members):
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], **members}
    return SimRequest(b"POST", b"/v1/chat/completions", (), json.dumps(body).encode())


def status_of(script):
    return next(step.status for step in script if isinstance(step, Head))


def body_of(script):
    return b"".join(step.data for step in script if isinstance(step, Body))


def events_of(script):
    return [line[6:] for line in body_of(script).decode().split("\n\n") if line]


def test_a_whole_answer_comes_after_the_first_token_time_in_one_piece():
    script = healthy(VOICE)(chat(), 6, RNG)
    assert status_of(script) == 200
    assert duration_s(script) == 0.5
    text = json.loads(body_of(script))["choices"][0]["message"]["content"]
    assert read_text(text) == VOICE.identity(6)


def test_a_stream_says_role_words_finish_and_done():
    script = healthy(VOICE)(chat(stream=True), 0, RNG)
    *chunks, done = events_of(script)
    deltas = [json.loads(c)["choices"][0] for c in chunks]
    assert done == "[DONE]"
    assert deltas[0]["delta"]["role"] == "assistant"
    assert deltas[-1]["finish_reason"] == "stop"
    assert read_text("".join(d["delta"].get("content", "") for d in deltas)) == VOICE.identity(0)
    assert isinstance(script[-1], End)


def test_the_gaps_of_a_stream_are_the_voice_s():
    script = healthy(VOICE)(chat(stream=True), 0, RNG)
    bodies = sum(isinstance(step, Body) for step in script)
    assert bodies == 1 + 6 + 1 + 1
    assert duration_s(script) == pytest.approx(0.5 + 0.25 * (bodies - 1))


def test_usage_is_the_event_before_done_when_asked_for():
    asked = chat(stream=True, stream_options={"include_usage": True})
    events = events_of(healthy(VOICE)(asked, 0, RNG))
    assert json.loads(events[-2])["usage"]["completion_tokens"] == 6
    assert json.loads(events[-2])["choices"] == []


def test_models_are_listed():
    script = healthy(VOICE)(SimRequest(b"GET", b"/v1/models?x=1", (), b""), 0, RNG)
    assert [m["id"] for m in json.loads(body_of(script))["data"]] == ["sim-model"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (SimRequest(b"GET", b"/v1/nothing", (), b""), 404),
        (SimRequest(b"GET", b"/v1/chat/completions", (), b""), 404),
        (SimRequest(b"POST", b"/v1/chat/completions", (), b"{"), 400),
        (SimRequest(b"POST", b"/v1/chat/completions", (), b'{"model":"m"}'), 400),
    ],
)
def test_what_is_no_chat_request_gets_an_error(request_, status):
    script = healthy(VOICE)(request_, 0, RNG)
    assert status_of(script) == status
    assert "message" in json.loads(body_of(script))["error"]


def test_the_shaky_provider_fails_its_first_and_then_every_third_call():
    statuses = [status_of(DEMO["sim-shaky"](chat(), n, RNG)) for n in range(7)]
    assert statuses == [503, 200, 200, 503, 200, 200, 503]


@pytest.mark.parametrize("name", ["sim-fast", "sim-steady"])
def test_the_other_demo_providers_are_always_well(name):
    for call in range(5):
        assert body_of(DEMO[name](chat(stream=True), call, RNG)).endswith(DONE)


def test_a_request_s_repr_shows_neither_body_nor_headers():
    request = SimRequest(b"POST", b"/v1", ((b"authorization", b"Bearer topsecret"),), b"my prompt")
    assert "topsecret" not in repr(request)
    assert "prompt" not in repr(request)
