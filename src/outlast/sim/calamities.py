"""The catalogue of faults: every way in which a provider's bad hour shows on the wire.

`CALAMITIES` maps a name to what happens, for streams and for whole answers alike: where a fault
only makes sense for one of them, the other gets its nearest relative (a stream that is cut after
its first words is, as a whole answer, a body that dies). `Harm` says what an honest gateway can
make of it; checkers judge by that, so a new entry must say it.

Pure data: no clock, no chance but the one handed in.
"""

import random
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from msgspec import Struct

from outlast.sim import answers
from outlast.sim.answers import Asked
from outlast.sim.provider import (
    Behaviour,
    SimRequest,
    Voice,
    answer,
    good_answer,
    paced,
    stream_parts,
    whole,
)
from outlast.sim.script import (
    Blackhole,
    Body,
    Cut,
    End,
    Hang,
    Head,
    Refuse,
    Script,
    ScriptHeaders,
    Step,
    Wait,
)

Chat: TypeAlias = Callable[[Voice, Asked, int, random.Random], Script]
"""What happens to a chat request: provider, request, number of the call, chance."""


class Harm(Enum):
    """What is left of the answer."""

    NONE = "none"  # strange or slow, but whole: a patient caller gets it
    BEFORE = "before"  # it fails before anything that a caller may be shown
    EMPTY = "empty"  # well-formed and finished, but nothing is said: only a candidate without
    # a first-token limit, whose first event of any kind commits, may pass that on
    AFTER = "after"  # it breaks after words that the caller may have seen
    CALLER = "caller"  # the caller's own mistake: nobody else is to blame


class Calamity(Struct, frozen=True):
    """One kind of bad hour. `stream` and `whole` say the harm to each kind of answer."""

    name: str
    chat: Chat
    stream: Harm
    whole: Harm

    def behaviour(self, voice: Voice) -> Behaviour:
        """A provider that suffers from this on every chat request."""

        def behave(request: SimRequest, call: int, rng: random.Random) -> Script:
            return answer(voice, request, lambda asked: self.chat(voice, asked, call, rng))

        return behave


SLOW_FIRST_TOKEN_S = 25.0
"""Longer than a candidate may take that has a successor (20 s), shorter than the last (30 s)."""

RETRY_AFTER_S = 7

_WORDS_SEEN = 3
"""Pieces of text that go out before something breaks."""


def _always(script: Script) -> Chat:
    return lambda _voice, _asked, _call, _rng: script


def _status(
    status: int, message: str, kind: str, code: str | None = None, extra: ScriptHeaders = ()
) -> Chat:
    body = answers.error_body(message, kind, code)
    return _always(whole(status, body, (*answers.JSON_HEADERS, *extra)))


def _events(*parts: bytes) -> Script:
    return (Head(200, answers.SSE_HEADERS), *map(Body, parts), End())


def _beginning(voice: Voice, asked: Asked, call: int) -> tuple[Step, ...]:
    """A stream's first words, or half of a whole answer whose size was announced."""
    who = voice.identity(call)
    if asked.stream:
        parts = stream_parts(who, asked)[: 1 + _WORDS_SEEN]
        head = Head(200, answers.SSE_HEADERS)
        return (Wait(voice.first_token_s), head, *paced(parts, voice.gap_s))
    body = answers.completion(who, asked)
    head = Head(200, (*answers.JSON_HEADERS, (b"content-length", str(len(body)).encode())))
    return (Wait(voice.first_token_s), head, Body(body[: len(body) // 2]))


def _cut_short(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    return (*_beginning(voice, asked, call), Cut())


def _stall(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    return (*_beginning(voice, asked, call), Hang())


def _eof_without_finish(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    return (*_beginning(voice, asked, call), End())


def _death_after_role(voice: Voice, asked: Asked, call: int, rng: random.Random) -> Script:
    if not asked.stream:
        return _cut_short(voice, asked, call, rng)
    role = answers.role_chunk(voice.identity(call), asked)
    return (Wait(voice.first_token_s), Head(200, answers.SSE_HEADERS), Body(role), Cut())


def _error_as_answer(_voice: Voice, asked: Asked, _call: int, _rng: random.Random) -> Script:
    """A stream request that is answered with an error object, not even as a stream."""
    body = answers.error_body("The server had an error", "server_error")
    return (
        whole(200, body)
        if not asked.stream
        else (Head(200, answers.JSON_HEADERS), Body(body), End())
    )


def _error_as_event(_voice: Voice, asked: Asked, _call: int, _rng: random.Random) -> Script:
    body = answers.error_body("Overloaded", "overloaded_error")
    return _events(b"data: " + body + b"\n\n") if asked.stream else whole(200, body)


def _error_midway(voice: Voice, asked: Asked, call: int, rng: random.Random) -> Script:
    if not asked.stream:
        return _error_as_answer(voice, asked, call, rng)
    body = answers.error_body("The server had an error", "server_error")
    return (*_beginning(voice, asked, call), Body(b"data: " + body + b"\n\n"), End())


def _nothing(_voice: Voice, asked: Asked, _call: int, _rng: random.Random) -> Script:
    return _events() if asked.stream else whole(200, b"")


def _only_done(_voice: Voice, asked: Asked, _call: int, _rng: random.Random) -> Script:
    return _events(answers.DONE) if asked.stream else whole(200, b"{}")


def _empty_choices(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    who = voice.identity(call)
    empty = {"id": who.answer_id, "object": "chat.completion", "model": asked.model, "choices": []}
    if not asked.stream:
        return whole(200, answers.json_bytes(empty))
    return _events(answers.sse({**empty, "object": "chat.completion.chunk"}), answers.DONE)


def _bad_json(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    if asked.stream:
        return _events(b'data: {"id": "x", "choices": [\n\n', b"data: {nope}\n\n", answers.DONE)
    return whole(200, answers.completion(voice.identity(call), asked)[:-9])


def _no_done(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    steps = list(good_answer(voice, asked, call))
    if asked.stream:
        del steps[-2]
    return tuple(steps)


def _malformed_event(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    steps = list(good_answer(voice, asked, call))
    if asked.stream:
        steps.insert(-6, Body(b'data: {"id": "half an ev\n\n'))
    return tuple(steps)


def _drip(voice: Voice, asked: Asked, call: int, rng: random.Random) -> Script:
    """The same bytes in pieces that respect no border of an event or a character."""
    steps: list[Step] = []
    for step in good_answer(voice, asked, call):
        if not isinstance(step, Body):
            steps.append(step)
            continue
        cuts = sorted(rng.sample(range(1, len(step.data)), k=2))
        bounds = [0, *cuts, len(step.data)]
        pieces = [step.data[a:b] for a, b in pairwise(bounds)]
        steps.extend(paced(pieces, voice.gap_s / 2))
    return tuple(steps)


def _slow_first_token(voice: Voice, asked: Asked, call: int, _rng: random.Random) -> Script:
    return (Wait(SLOW_FIRST_TOKEN_S), *good_answer(voice, asked, call))


def _html(_voice: Voice, _asked: Asked, _call: int, _rng: random.Random) -> Script:
    page = b"<!doctype html><title>Just a moment</title><p>Checking your browser.</p>"
    return whole(200, page, ((b"content-type", b"text/html"),))


_RETRY_AFTER: ScriptHeaders = ((b"retry-after", str(RETRY_AFTER_S).encode()),)
_NO_QUOTA = ("You exceeded your current quota", "insufficient_quota", "insufficient_quota")

_ENTRIES: tuple[Calamity, ...] = (
    Calamity("refused", _always((Refuse(),)), Harm.BEFORE, Harm.BEFORE),
    Calamity("blackhole", _always((Blackhole(),)), Harm.BEFORE, Harm.BEFORE),
    Calamity("header_hang", _always((Hang(),)), Harm.BEFORE, Harm.BEFORE),
    Calamity("reset_before_head", _always((Cut(),)), Harm.BEFORE, Harm.BEFORE),
    Calamity("closed_before_head", _always((End(),)), Harm.BEFORE, Harm.BEFORE),
    Calamity("status_500", _status(500, "Oops", "server_error"), Harm.BEFORE, Harm.BEFORE),
    Calamity("status_503", _status(503, "Busy", "server_error"), Harm.BEFORE, Harm.BEFORE),
    Calamity("status_529", _status(529, "Busy", "overloaded_error"), Harm.BEFORE, Harm.BEFORE),
    Calamity(
        "status_429_retry_after",
        _status(429, "Slow down", "rate_limit_error", "rate_limit_exceeded", _RETRY_AFTER),
        Harm.BEFORE,
        Harm.BEFORE,
    ),
    Calamity(
        "status_429_bare",
        _status(429, "Slow down", "rate_limit_error", "rate_limit_exceeded"),
        Harm.BEFORE,
        Harm.BEFORE,
    ),
    Calamity(
        "status_401",
        _status(401, "Incorrect API key", "invalid_request_error", "invalid_api_key"),
        Harm.BEFORE,
        Harm.BEFORE,
    ),
    Calamity("status_402", _status(402, *_NO_QUOTA), Harm.BEFORE, Harm.BEFORE),
    Calamity(
        "status_404",
        _status(404, "No such model", "invalid_request_error", "model_not_found"),
        Harm.BEFORE,
        Harm.BEFORE,
    ),
    Calamity("ok_with_error_body", _error_as_answer, Harm.BEFORE, Harm.BEFORE),
    Calamity("ok_with_html", _html, Harm.BEFORE, Harm.BEFORE),
    Calamity("empty_stream", _nothing, Harm.BEFORE, Harm.BEFORE),
    Calamity("only_done", _only_done, Harm.BEFORE, Harm.BEFORE),
    Calamity("empty_choices", _empty_choices, Harm.EMPTY, Harm.BEFORE),
    Calamity("error_as_first_event", _error_as_event, Harm.BEFORE, Harm.BEFORE),
    Calamity("death_after_role", _death_after_role, Harm.BEFORE, Harm.BEFORE),
    Calamity("bad_json", _bad_json, Harm.BEFORE, Harm.BEFORE),
    Calamity("cut_after_commit", _cut_short, Harm.AFTER, Harm.BEFORE),
    Calamity("stall_after_commit", _stall, Harm.AFTER, Harm.BEFORE),
    Calamity("eof_without_finish", _eof_without_finish, Harm.AFTER, Harm.BEFORE),
    Calamity("error_after_commit", _error_midway, Harm.AFTER, Harm.BEFORE),
    Calamity("no_done", _no_done, Harm.NONE, Harm.NONE),
    Calamity("drip", _drip, Harm.NONE, Harm.NONE),
    Calamity("slow_first_token", _slow_first_token, Harm.NONE, Harm.NONE),
    Calamity("malformed_event", _malformed_event, Harm.NONE, Harm.NONE),
    Calamity(
        "caller_400",
        _status(400, "Bad temperature", "invalid_request_error", "invalid_value"),
        Harm.CALLER,
        Harm.CALLER,
    ),
)

CALAMITIES: Mapping[str, Calamity] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
