"""The catalogue keeps its own promises: each entry does the harm that it declares."""

import json
import random

import pytest

from outlast.sim.answers import DONE, read_text
from outlast.sim.calamities import CALAMITIES, Harm
from outlast.sim.provider import SimRequest, Voice
from outlast.sim.script import (
    Blackhole,
    Body,
    Cut,
    End,
    Hang,
    Head,
    Refuse,
    Wait,
    content_length,
)

VOICE = Voice("sim-a")
LAST = (End, Cut, Hang, Refuse, Blackhole)


def script_of(name, stream, seed=0):
    body = {"model": "m", "messages": [], "stream": stream}
    request = SimRequest(b"POST", b"/v1/chat/completions", (), json.dumps(body).encode())
    chance = random.Random(seed)  # noqa: S311 - chance of a simulation
    return CALAMITIES[name].behaviour(VOICE)(request, 0, chance)


def text_of(script, stream):
    """The text that a lenient client would piece together, and whether a finish was said."""
    raw = b"".join(step.data for step in script if isinstance(step, Body))
    if not stream:
        try:
            choice = json.loads(raw)["choices"][0]
        except (ValueError, LookupError, TypeError):
            return "", False
        return choice["message"]["content"], True
    text, finished = "", False
    for event in raw.split(b"\n\n"):
        try:
            choice = json.loads(event[6:])["choices"][0]
        except (ValueError, LookupError):
            continue
        text += choice["delta"].get("content", "")
        finished = finished or choice["finish_reason"] is not None
    return text, finished


ALL = [(name, stream) for name in CALAMITIES for stream in (True, False)]


@pytest.mark.parametrize(("name", "stream"), ALL)
def test_a_script_is_well_formed(name, stream):
    script = script_of(name, stream)
    assert isinstance(script[-1], LAST)
    assert not any(isinstance(step, LAST) for step in script[:-1])
    heads = [step for step in script if isinstance(step, Head)]
    assert len(heads) <= 1
    assert all(step.data for step in script if isinstance(step, Body))
    assert all(step.seconds >= 0 for step in script if isinstance(step, Wait))
    sent = sum(len(step.data) for step in script if isinstance(step, Body))
    owed = content_length(heads[0].headers) if heads else None
    if owed is not None and isinstance(script[-1], End):
        assert sent == owed or CALAMITIES[name].whole is Harm.BEFORE


@pytest.mark.parametrize(("name", "stream"), ALL)
def test_the_harm_is_the_declared_one(name, stream):
    script = script_of(name, stream)
    harm = CALAMITIES[name].stream if stream else CALAMITIES[name].whole
    text, finished = text_of(script, stream)
    if harm is Harm.NONE:
        assert read_text(text) == VOICE.identity(0)
        assert finished
        assert isinstance(script[-1], End)
    elif harm is Harm.AFTER:
        assert text
        assert not finished
    else:
        assert text == "" or not isinstance(script[-1], End) or not finished


def test_a_caller_s_mistake_is_a_plain_400():
    script = script_of("caller_400", stream=False)
    assert [step.status for step in script if isinstance(step, Head)] == [400]


def test_a_drip_breaks_events_in_the_middle_without_changing_a_byte():
    script = script_of("drip", stream=True)
    parts = [step.data for step in script if isinstance(step, Body)]
    assert any(not part.endswith(b"\n\n") for part in parts)
    plain = [step.data for step in script_of("slow_first_token", True) if isinstance(step, Body)]
    assert b"".join(parts) == b"".join(plain)


def test_no_done_still_finishes():
    raw = b"".join(s.data for s in script_of("no_done", True) if isinstance(s, Body))
    assert b'"finish_reason":"stop"' in raw
    assert DONE not in raw


@pytest.mark.parametrize(("name", "stream"), ALL)
def test_the_same_chance_gives_the_same_script(name, stream):
    assert script_of(name, stream, seed=5) == script_of(name, stream, seed=5)
