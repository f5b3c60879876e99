"""Answers to what never becomes a request. Owns their words; `server.protocol` decides when.

No dialect is known at this point, so the body is the plainest OpenAI-shaped error. It quotes
nothing of what was received.
"""

import random
from http import HTTPStatus

import msgspec
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import STATUS_LINE


class Refusal(Struct, frozen=True):
    """A status with its words. `retryable` says whether the same bytes may work later."""

    status: int
    gateway_code: str
    message: str
    retryable: bool = False


BAD_REQUEST = Refusal(400, "malformed_request", "The bytes received are no valid HTTP/1.1 request.")
BAD_VERSION = Refusal(400, "malformed_request", "Use HTTP/1.1 (or HTTP/1.0).")
BAD_HOST = Refusal(400, "malformed_request", "Send exactly one Host field.")
FRAMING_TOO_LARGE = Refusal(
    400, "malformed_request", "Chunk extensions and trailers are larger than this gateway reads."
)
TARGET_TOO_LONG = Refusal(414, "target_too_long", "The request target is too long.")
HEAD_TOO_LARGE = Refusal(431, "head_too_large", "The request head is too large.")
TOO_MANY_FIELDS = Refusal(431, "head_too_large", "The request head has too many fields.")
HEAD_TOO_SLOW = Refusal(408, "request_timeout", "The request head took too long.", retryable=True)
BODY_TOO_SLOW = Refusal(
    408, "request_timeout", "The request body made no progress.", retryable=True
)
TOO_MANY_CONNECTIONS = Refusal(
    503, "gateway_overloaded", "The gateway has no connection to spare.", retryable=True
)


def refusal_body(refusal: Refusal, request_id: str) -> bytes:
    """The JSON body of a refusal."""
    retry = refusal.status >= 500
    return msgspec.json.encode(
        {
            "error": {
                "code": refusal.status,
                "type": "api_error" if retry else "invalid_request_error",
                "param": None,
                "message": refusal.message,
                "metadata": {
                    "gateway_code": refusal.gateway_code,
                    "retryable": refusal.retryable,
                    "request_id": request_id,
                },
            }
        }
    )


def refusal_bytes(refusal: Refusal) -> bytes:
    """A whole refusal as it goes onto the wire, `connection: close` included."""
    request_id = new_request_id()
    headers = [
        (b"content-type", b"application/json"),
        (b"x-request-id", request_id.encode()),
        (b"x-outlast-gateway-code", refusal.gateway_code.encode()),
        (b"x-should-retry", b"true" if refusal.retryable else b"false"),
    ]
    if refusal.status == 503:
        headers.append((b"retry-after", b"1"))
    return response_bytes(refusal.status, headers, refusal_body(refusal, request_id))


def response_bytes(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    """A closing HTTP/1.1 response (RFC 9112 section 9.6) without any help of the server."""
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
    lines += [name + b": " + value for name, value in headers]
    lines += [b"content-length: %d" % len(body), b"connection: close", b"", body]
    return b"\r\n".join(lines)


def answer_head(status: int, headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """The head of a response. None: a field would end its line and begin another, or is cut."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        lines.append(b"%b: %b\r\n" % (name, value))
    lines.append(b"\r\n")
    head = b"".join(lines)
    ends = len(lines)
    if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
        return None
    return head


def new_request_id() -> str:
    """128 random bits as 32 hex digits. It names a request and guards nothing.

    Not from the system's source: that is a system call on every request's path.
    """
    return random.getrandbits(128).to_bytes(16, "big").hex()
