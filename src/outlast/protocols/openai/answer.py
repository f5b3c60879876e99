"""A whole chat completion, the usage object, and the listing of models.

Decides whether a 2xx really is an answer; `stream.py` does the same for streams. The body that
the caller gets is the provider's, byte for byte, but for a `routing` member where one is wanted.

Surprising cases: an answer without any output is an answer when it has a finish reason, and an
empty one when it has not; a refusal is an answer.
"""

from typing import Any

import msgspec
from msgspec import Struct

from outlast.model.fault import Fault, FaultKind
from outlast.model.usage import Usage
from outlast.protocols.dialect import Headers, WholeAnswer
from outlast.protocols.openai.faults import embedded_fault, fault_inside

_NOTHING = Usage()

MODELS_MAX = 2000
"""As many models of one provider as are ever listed; a longer listing is cut."""


class Output(Struct, frozen=True):
    """Where a model's output stands, in a stream's `delta` as in a whole `message`.

    Three names for reasoning, because vendors have not agreed on one.
    """

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None
    audio: Any = None

    def spoken(self) -> bool:
        """Say whether any of it is more than an empty value."""
        return bool(
            self.content
            or self.tool_calls
            or self.reasoning_content
            or self.reasoning
            or self.refusal
            or self.function_call
            or self.audio
        )


class _Choice(Struct, frozen=True):
    message: Output | None = None
    finish_reason: Any = None


class _CountedInput(Struct, frozen=True):
    cached_tokens: int | None = None


class _CountedOutput(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Counted(Struct, frozen=True):
    """A usage object as almost every provider spells it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CountedInput | None = None
    completion_tokens_details: _CountedOutput | None = None


class _Whole(Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: _Counted | None = None
    error: Any = None


class _Odd(Struct, frozen=True):
    """A whole answer whose usage is of no known shape, which spoils nothing else in it."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


class _Model(Struct, frozen=True):
    id: str


class _Listing(Struct, frozen=True):
    data: list[_Model]


_whole = msgspec.json.Decoder(_Whole).decode
_odd = msgspec.json.Decoder(_Odd).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_listing = msgspec.json.Decoder(_Listing | list[_Model]).decode


def read_whole(headers: Headers, body: bytes) -> WholeAnswer | Fault:
    """Read a 2xx that is no stream: the answer, or the fault that it really is."""
    content_type = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value.lower()
    if content_type and b"json" not in content_type:
        return _malformed("the answer's content type is not JSON")
    whole: _Whole | _Odd
    try:
        whole = _whole(body)
    except (msgspec.DecodeError, RecursionError):
        try:
            whole = _odd(body)
        except (msgspec.DecodeError, RecursionError):
            return _unread(body)
    if whole.error:
        return fault_inside(body, whole.error)
    choices = whole.choices
    if not choices:
        return _malformed("the answer has no choices")
    ended = refused = False
    for choice in choices:
        if choice.finish_reason:
            ended = True
            refused = refused or choice.finish_reason == "content_filter"
        if choice.message is not None and choice.message.refusal:
            refused = True
    if not ended and not any(c.message is not None and c.message.spoken() for c in choices):
        return Fault(FaultKind.EMPTY_RESPONSE, status=200, detail="no output, no finish reason")
    usage = _usage(whole.usage) if isinstance(whole, _Whole) else read_usage(whole.usage)
    return WholeAnswer(body, usage, refused)


def _unread(body: bytes) -> Fault:
    """Look at an object that has another shape: an error in it still says more than the shape."""
    try:
        value = _object(body)
    except (msgspec.DecodeError, RecursionError):
        return _malformed("the answer is no JSON object")
    if value.get("error"):
        return embedded_fault(value)
    return _malformed("the answer has not the shape of a chat completion")


def _malformed(detail: str) -> Fault:
    return Fault(FaultKind.MALFORMED_RESPONSE, status=200, detail=detail)


def _usage(counted: _Counted | None) -> Usage | None:
    """As `read_usage` for the usual spelling, at a third of the price."""
    if counted is None:
        return None
    inputs, outputs = counted.prompt_tokens_details, counted.completion_tokens_details
    usage = Usage(
        _positive(counted.prompt_tokens),
        _positive(counted.completion_tokens),
        0 if inputs is None else _positive(inputs.cached_tokens),
        0 if outputs is None else _positive(outputs.reasoning_tokens),
    )
    return None if usage == _NOTHING else usage


def _positive(count: int | None) -> int:
    return count if count and count > 0 else 0


def read_usage(value: object) -> Usage | None:
    """Read a usage object; None where it is none or counts nothing."""
    if not isinstance(value, dict):
        return None
    usage = Usage(
        input_tokens=_count(value, "prompt_tokens"),
        output_tokens=_count(value, "completion_tokens"),
        cached_tokens=_count(value.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=_count(value.get("completion_tokens_details"), "reasoning_tokens"),
    )
    return None if usage == _NOTHING else usage


def _count(holder: object, name: str) -> int:
    value = holder.get(name) if isinstance(holder, dict) else None
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def splice_routing(body: bytes, routing: bytes) -> bytes:
    """Put `routing` in as the last member; an answer that has one keeps its own."""
    end = body.rfind(b"}")
    if end < 0 or _has_routing(body):
        return body
    before = body[:end]
    comma = b"" if before.rstrip().endswith(b"{") else b","
    return b"".join((before, comma, b'"routing":', routing, body[end:]))


def _has_routing(body: bytes) -> bool:
    if b'"routing"' not in body:
        return False
    try:
        return "routing" in _names(body)
    except (msgspec.DecodeError, RecursionError):
        return True  # nobody can tell, so nothing is put in


def read_models(body: bytes) -> list[str]:
    """Return the ids of a listing, at most `MODELS_MAX`.

    Raises:
        ValueError: the body is no listing (`msgspec.DecodeError` is one).
    """
    try:
        listing = _listing(body)
    except RecursionError:
        raise ValueError("the listing is nested too deeply") from None
    models = listing.data if isinstance(listing, _Listing) else listing
    return [model.id for model in models[:MODELS_MAX]]
