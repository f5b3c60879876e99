"""How a simulated provider spells what it says, and how a checker reads it back.

Every answer carries a text that can be judged on sight: it opens with the provider and the call,
counts its words (`w0 w1 w2 …`) and closes with a marker that repeats both. A text that was cut,
mixed with another call's or doubled therefore fails `read_text`. The id of an answer, and so of
each of its chunks, names the provider and the call too.

Spelling only: what is said, and when, is decided in `provider` and `calamities`.
"""

import re

import msgspec
from msgspec import Struct

from outlast.sim.script import ScriptHeaders

JSON_HEADERS: ScriptHeaders = ((b"content-type", b"application/json"),)
SSE_HEADERS: ScriptHeaders = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)
DONE = b"data: [DONE]\n\n"
CREATED_S = 1_800_000_000
"""`created` of every answer: fixed, so that the same seed gives the same bytes."""

_TEXT = re.compile(
    r"\[(?P<who>[^\s\[\]#]+)#(?P<call>\d+)\](?P<words>(?: w\d+)*) \[end (?P<end>[^\]]*)\]"
)


class Asked(Struct, frozen=True):
    """What a provider reads off a request."""

    model: str
    stream: bool = False
    usage: bool = False


class Identity(Struct, frozen=True):
    """Who answers which call (0-based), in how many words."""

    provider: str
    call: int
    words: int

    @property
    def answer_id(self) -> str:
        return f"chatcmpl-{self.provider}-{self.call}"


def pieces(who: Identity) -> list[str]:
    """The text in the pieces in which a stream sends it."""
    name = f"{who.provider}#{who.call}"
    return [f"[{name}]", *(f" w{n}" for n in range(who.words)), f" [end {name}]"]


def read_text(text: str) -> Identity | None:
    """Whose text this is; None if it is not exactly one whole answer."""
    match = _TEXT.fullmatch(text)
    if match is None or match["end"] != f"{match['who']}#{match['call']}":
        return None
    words = match["words"].split()
    if words != [f"w{n}" for n in range(len(words))]:
        return None
    return Identity(match["who"], int(match["call"]), len(words))


def _usage(who: Identity) -> dict[str, int]:
    output = who.words + 2
    return {"prompt_tokens": 7, "completion_tokens": output, "total_tokens": 7 + output}


def completion(who: Identity, asked: Asked) -> bytes:
    """A whole chat completion."""
    message = {"role": "assistant", "content": "".join(pieces(who)), "refusal": None}
    return msgspec.json.encode(
        {
            "id": who.answer_id,
            "object": "chat.completion",
            "created": CREATED_S,
            "model": asked.model,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
            ],
            "usage": _usage(who),
        }
    )


def json_bytes(payload: object) -> bytes:
    """Any body as JSON."""
    return msgspec.json.encode(payload)


def sse(payload: object) -> bytes:
    """One data event."""
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"


def _chunk(who: Identity, asked: Asked, choices: list[dict[str, object]]) -> dict[str, object]:
    return {
        "id": who.answer_id,
        "object": "chat.completion.chunk",
        "created": CREATED_S,
        "model": asked.model,
        "choices": choices,
        "usage": None,
    }


def _delta(
    who: Identity, asked: Asked, delta: dict[str, object], finish_reason: str | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return sse(_chunk(who, asked, [choice]))


def role_chunk(who: Identity, asked: Asked) -> bytes:
    """The preamble: it says nothing yet, so it commits nothing."""
    return _delta(who, asked, {"role": "assistant", "content": "", "refusal": None})


def content_chunks(who: Identity, asked: Asked) -> list[bytes]:
    """The text, one piece per event."""
    return [_delta(who, asked, {"content": piece}) for piece in pieces(who)]


def finish_chunk(who: Identity, asked: Asked, reason: str = "stop") -> bytes:
    """The event that says why the answer ends."""
    return _delta(who, asked, {}, reason)


def usage_chunks(who: Identity, asked: Asked) -> list[bytes]:
    """The usage chunk, if it was asked for."""
    if not asked.usage:
        return []
    return [sse({**_chunk(who, asked, []), "usage": _usage(who)})]


def error_body(message: str, kind: str, code: str | None = None) -> bytes:
    """An error as this dialect's providers spell it."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return msgspec.json.encode({"error": error})


def model_list(provider: str, models: tuple[str, ...]) -> bytes:
    """The listing of models."""
    data = [
        {"id": model, "object": "model", "created": CREATED_S, "owned_by": provider}
        for model in models
    ]
    return msgspec.json.encode({"object": "list", "data": data})
