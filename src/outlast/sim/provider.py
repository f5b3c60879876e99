"""Simulated providers: pure functions from a request to a script.

A `Behaviour` has no state and no clock: the host counts the calls and hands in the chance, so one
behaviour may play in memory, over sockets or in many worlds at once, always the same.

`DEMO` holds the providers that run when nothing is configured. `sim-shaky` fails its first call,
because the first request that a newcomer sends should show a failover.
"""

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import msgspec
from msgspec import Struct

from outlast.sim import answers
from outlast.sim.answers import Asked, Identity
from outlast.sim.script import Body, End, Head, Script, ScriptHeaders, Step, Wait


class SimRequest(Struct, frozen=True):
    """A request as it reached a simulated provider. Header names are in lower case."""

    method: bytes
    target: bytes
    headers: ScriptHeaders
    body: bytes

    def __repr__(self) -> str:  # headers hold keys, bodies hold prompts
        return f"SimRequest({self.method!r}, {self.target!r}, {len(self.body)} bytes)"


Behaviour: TypeAlias = Callable[[SimRequest, int, random.Random], Script]
"""Request, 0-based number of the call at this provider, chance -> what happens."""


class Voice(Struct, frozen=True):
    """How a provider sounds when it is well. Durations are seconds.

    `first_token_s` passes before anything is said (a whole answer: before all of it), `gap_s`
    between the pieces of a stream.
    """

    name: str
    words: int = 12
    first_token_s: float = 0.05
    gap_s: float = 0.02
    models: tuple[str, ...] = ("sim-model",)

    def identity(self, call: int) -> Identity:
        return Identity(self.name, call, self.words)


class _StreamOptions(Struct):
    include_usage: bool = False


class _ChatBody(Struct):
    model: str
    messages: list[msgspec.Raw]
    stream: bool = False
    stream_options: _StreamOptions | None = None


def read_request(request: SimRequest) -> Asked | None:
    """What is asked for; None if this is no chat request."""
    try:
        body = msgspec.json.decode(request.body, type=_ChatBody)
    except msgspec.MsgspecError:
        return None
    options = body.stream_options or _StreamOptions()
    return Asked(body.model, body.stream, body.stream and options.include_usage)


def whole(status: int, body: bytes, headers: ScriptHeaders = answers.JSON_HEADERS) -> Script:
    """An answer in one piece, at once."""
    head = Head(status, (*headers, (b"content-length", str(len(body)).encode())))
    return (head, Body(body), End()) if body else (head, End())


def paced(parts: list[bytes], gap_s: float) -> list[Step]:
    """Body pieces with a gap before each but the first."""
    steps: list[Step] = []
    for part in parts:
        if steps:
            steps.append(Wait(gap_s))
        steps.append(Body(part))
    return steps


def stream_parts(who: Identity, asked: Asked) -> list[bytes]:
    """Everything that a good stream says, event by event."""
    return [
        answers.role_chunk(who, asked),
        *answers.content_chunks(who, asked),
        answers.finish_chunk(who, asked),
        *answers.usage_chunks(who, asked),
        answers.DONE,
    ]


def good_answer(voice: Voice, asked: Asked, call: int) -> Script:
    """What a well provider does with a chat request."""
    who = voice.identity(call)
    if not asked.stream:
        return (Wait(voice.first_token_s), *whole(200, answers.completion(who, asked)))
    steps = paced(stream_parts(who, asked), voice.gap_s)
    return (Wait(voice.first_token_s), Head(200, answers.SSE_HEADERS), *steps, End())


def answer(voice: Voice, request: SimRequest, chat: Callable[[Asked], Script]) -> Script:
    """Route one request: the listing of models, a chat request (`chat` decides), or an error."""
    path = request.target.partition(b"?")[0]
    if request.method == b"GET" and path.endswith(b"/models"):
        return whole(200, answers.model_list(voice.name, voice.models))
    if request.method != b"POST" or not path.endswith(b"/chat/completions"):
        return whole(404, answers.error_body("Unknown path", "invalid_request_error"))
    asked = read_request(request)
    if asked is None:
        return whole(400, answers.error_body("No chat request", "invalid_request_error"))
    return chat(asked)


def healthy(voice: Voice) -> Behaviour:
    """A provider that is always well."""

    def behave(request: SimRequest, call: int, _rng: random.Random) -> Script:
        return answer(voice, request, lambda asked: good_answer(voice, asked, call))

    return behave


def failing_every(voice: Voice, calls: int) -> Behaviour:
    """A provider that answers 503 to its calls 0, `calls`, 2 x `calls` … and is well between."""

    def chat(asked: Asked, call: int) -> Script:
        if call % calls == 0:
            return whole(503, answers.error_body("The server is overloaded", "server_error"))
        return good_answer(voice, asked, call)

    def behave(request: SimRequest, call: int, _rng: random.Random) -> Script:
        return answer(voice, request, lambda asked: chat(asked, call))

    return behave


DEMO: Mapping[str, Behaviour] = MappingProxyType(
    {
        "sim-fast": healthy(Voice("sim-fast", first_token_s=0.02, gap_s=0.01)),
        "sim-shaky": failing_every(Voice("sim-shaky"), 3),
        "sim-steady": healthy(Voice("sim-steady", first_token_s=0.08)),
    }
)
"""The providers of a start without any configuration, by provider name."""
