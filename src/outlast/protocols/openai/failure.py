"""How a final error is spelled for callers of this dialect: as a body, and inside a stream.

Decides spelling only: status, words and message are the error's own. Both forms carry one and the
same `error` object. Inside a stream the last chunk looks like any other (clients parse it as
one), names its end `error`, and keeps the stream's id, model and time.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from outlast.errors import GatewayError
from outlast.protocols.dialect import StreamReader
from outlast.protocols.openai.stream import DONE, ChatStream

_encode = msgspec.json.Encoder().encode

_NATIVE_TYPE = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    409: "invalid_request_error",
    413: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}
"""The dialect's own word by status; whatever is our side's or a provider's fault is api_error."""


def error_body(error: GatewayError, request_id: str, routing: bytes | None) -> bytes:
    """Spell a final error as a body."""
    body: dict[str, Any] = {"error": _error_object(error, request_id)}
    if routing is not None:
        body["routing"] = Raw(routing)
    return _encode(body)


def in_band(error: GatewayError, reader: StreamReader, request_id: str) -> bytes:
    """End a committed stream: one last chunk that says the error, then the terminal event."""
    chunk: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}],
        "error": _error_object(error, request_id),
    }
    if isinstance(reader, ChatStream):
        own = {"id": reader.answer_id, "model": reader.model, "created": reader.created}
        chunk.update({name: value for name, value in own.items() if value is not None})
    return b"data: " + _encode(chunk) + b"\n\n" + DONE


def _error_object(error: GatewayError, request_id: str) -> dict[str, Any]:
    later: dict[str, str] = {}
    if error.retry_at is not None:
        later["retry_after"] = datetime.fromtimestamp(error.retry_at, UTC).isoformat()
    return {
        "code": error.status,
        "type": _NATIVE_TYPE.get(error.status, "api_error"),
        "param": error.param,
        "message": error.message,
        "metadata": {
            "error_type": error.error_type,
            "gateway_code": error.gateway_code,
            "normalized_code": error.normalized_code,
            "retryable": error.retryable,
            **later,
            "providers_attempted": list(dict.fromkeys(a.provider for a in error.attempts)),
            "attempts": list(error.attempts),
            "skipped": [
                {"deployment": s.deployment, "reason": s.reason.value} for s in error.skipped
            ],
            "request_id": request_id,
        },
    }
