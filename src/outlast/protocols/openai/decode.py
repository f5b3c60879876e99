"""Bytes of a chat completion request -> `NeutralRequest`.

Decides what is no request of this dialect (400) and reads off the three members that the gateway
acts on: `model`, `stream`, `stream_options.include_usage`. Everything else is the provider's to
judge and keeps its bytes.

Surprising cases: the JSON is strict where lenient readers differ from one another (RFC 8259,
sections 4 and 8.1): a top-level member that stands twice, bytes that are not UTF-8, NaN. The
members `provider`, `models` and `outlast` speak to a gateway, not to a provider: empty ones are
stripped, others are refused, because to ignore a routing wish would be to answer falsely.
"""

import json
from typing import Any

import msgspec
from msgspec import Raw

from outlast.errors import GatewayError, invalid_parameter, invalid_request
from outlast.model.request import NeutralRequest

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_value = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_NULL = Raw(b"null")
MEMBERS_MAX = 1_000
"""Far above what any request has; each costs time in which nobody else is served."""

_GATEWAY_MEMBERS = ("provider", "models", "outlast")


def decode_request(body: bytes) -> NeutralRequest:
    """Read a request.

    Raises:
        GatewayError: 400, the body is no chat completion request.
    """
    members = _split(body)
    if not members.keys().isdisjoint(_GATEWAY_MEMBERS):
        _strip_routing(members)
    model = _model(members)
    if members.get("messages", _NULL) == _NULL:  # its value is not built: it is large
        raise invalid_request("The body has no 'messages'.", param="messages")
    stream = _read(members, "stream")
    if stream is not None and not isinstance(stream, bool):
        raise invalid_parameter("stream", "'stream' must be true or false.")
    usage_asked = "stream_options" in members and _include_usage(members)
    return NeutralRequest(
        dialect="openai",
        model=model,
        stream=bool(stream),
        usage_asked=bool(stream) and usage_asked,
        members=members,
    )


def _split(body: bytes) -> dict[str, Raw]:
    """Cut the top level into its members, each value's bytes untouched."""
    try:
        text = str(body, "utf-8")
        members = _members(body)
    except UnicodeDecodeError:
        raise invalid_request("The body is not UTF-8.") from None
    except msgspec.ValidationError:
        raise invalid_request("The body must be a JSON object.") from None
    except msgspec.DecodeError as error:
        raise invalid_request(f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise _too_deep() from None
    if len(members) > MEMBERS_MAX:
        raise invalid_request(f"The body has more than {MEMBERS_MAX} top-level members.")
    encoded = _encode(members)
    if encoded != body and _stands_twice(body, encoded, text):
        raise invalid_request("A top-level member of the body stands there twice.")
    return members


def _stands_twice(body: bytes, encoded: bytes, text: str) -> bool:
    """Say whether a top-level name stands twice, given the body with each name once.

    Without their spaces the two are equal if none does. Only names that are spelled with escapes
    need the slow look.
    """
    try:
        if msgspec.json.format(body, indent=-1) == msgspec.json.format(encoded, indent=-1):
            return False
        return _repeats(text)
    except RecursionError:
        raise _too_deep() from None


def _repeats(text: str) -> bool:
    names: list[str] = []

    def keep(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [name for name, _ in pairs]  # the outermost object comes last

    json.loads(text, object_pairs_hook=keep, parse_int=str, parse_float=str)
    return len(names) != len(set(names))


def _too_deep() -> GatewayError:
    return invalid_request("The body is nested too deeply.")


def _read(members: dict[str, Raw], name: str) -> Any:
    """Return a member's value, None if it is absent or null."""
    raw = members.get(name)
    return None if raw is None else _parse(name, raw)


def _parse(name: str, raw: Raw) -> Any:
    """Build a member's value: numbers out of range and lone surrogates show only now."""
    try:
        return _value(raw)
    except (msgspec.DecodeError, RecursionError):
        raise invalid_request(f"{name!r} cannot be read.", param=name) from None


def _model(members: dict[str, Raw]) -> str:
    if "model" not in members:
        raise invalid_request("The body has no 'model'.", param="model")
    model = _read(members, "model")
    if not isinstance(model, str) or not model:
        raise invalid_parameter("model", "'model' must be a non-empty string.")
    return model


def _include_usage(members: dict[str, Raw]) -> bool:
    options = _read(members, "stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise invalid_parameter("stream_options", "'stream_options' must be an object.")
    asked = options.get("include_usage")
    if asked is not None and not isinstance(asked, bool):
        raise invalid_parameter(
            "stream_options.include_usage",
            "'stream_options.include_usage' must be true or false.",
        )
    return bool(asked)


def _strip_routing(members: dict[str, Raw]) -> None:
    for name in _GATEWAY_MEMBERS:
        if name in members and _parse(name, members.pop(name)) not in (None, {}, []):
            raise invalid_parameter(
                name,
                f"Routing of one request by {name!r} is not built yet. Remove the member; pools in "
                "the configuration decide the order of providers.",
            )
