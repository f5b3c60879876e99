"""Reading one request body. Owns its size limit; what is in the body is the dialect's matter."""

from outlast.errors import GatewayError
from outlast.server.errors import request_too_large, unsupported_encoding
from outlast.server.responder import Receive


def refuse_unread(length: bytes | None, encoding: bytes | None, bytes_max: int) -> None:
    """Refuse on the word of the head alone.

    Raises:
        GatewayError: 413 or 415.
    """
    if encoding is not None and encoding.strip().lower() not in {b"identity", b""}:
        raise unsupported_encoding()
    # The parser has refused what is no number; another server may hand it on.
    if length is not None and length.isdigit() and int(length) > bytes_max:
        raise request_too_large(bytes_max)


async def read_body(receive: Receive, bytes_max: int) -> bytes | GatewayError | None:
    """The whole body; the error for one above `bytes_max`; None when the caller left."""
    message = await receive()
    if message["type"] != "http.request":
        return None
    data: bytes = message.get("body", b"")
    more = message.get("more_body", False)
    parts, size = [data], len(data)
    while size <= bytes_max and more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        data = message.get("body", b"")
        more = message.get("more_body", False)
        parts.append(data)
        size += len(data)
    if size > bytes_max:
        return request_too_large(bytes_max)
    return data if len(parts) == 1 else b"".join(parts)
