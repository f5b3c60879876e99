"""How a request head is spelled. Owns the bytes before the body and what may not go into them.

A head is the same for every call with the same origin, target and fields, so everything up to
the content length is validated and joined once and then looked up.

Surprising cases: a forbidden byte is a `ValueError`, because the configuration has to refuse it
long before; the message names the field and never its value, which may be a secret. A GET or
HEAD without a body has no `content-length`; a POST without one says 0.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from outlast.model.topology import Origin
from outlast.ports import UpstreamCall

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 section 5.6.2
_TARGET = re.compile(rb"/[\x21-\x7e\x80-\xff]*")  # origin form, RFC 9112 section 3.2.1
_FORBIDDEN_IN_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110 section 5.5
_OURS = frozenset({b"host", b"content-length", b"connection", b"transfer-encoding"})
_BODY_OPTIONAL = frozenset({b"GET", b"HEAD"})
_DEFAULT_PORTS = {"http": 80, "https": 443}

Prefix = Callable[[Origin, bytes, bytes, tuple[tuple[bytes, bytes], ...]], bytes]


class RequestHeads:
    """Spells heads; remembers the last `capacity` heads."""

    def __init__(self, capacity: int) -> None:
        self._prefix: Prefix = lru_cache(maxsize=capacity)(head_prefix)

    def prefix(self, call: UpstreamCall) -> bytes:
        """See `head_prefix`.

        Raises:
            ValueError: the call holds what may not go into a head.
        """
        return self._prefix(call.origin, call.method, call.target, call.headers)


def whole_request(prefix: bytes, call: UpstreamCall) -> bytes:
    """Head and body in one piece, so that they leave in one write."""
    if not call.body and call.method in _BODY_OPTIONAL:
        return prefix + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n%b" % (prefix, len(call.body), call.body)


def head_prefix(
    origin: Origin, method: bytes, target: bytes, headers: tuple[tuple[bytes, bytes], ...]
) -> bytes:
    """Request line, host and fields, each with its line end; no blank line.

    Raises:
        ValueError: a part holds what may not go into a head.
    """
    if _TOKEN.fullmatch(method) is None:
        raise ValueError("the method is no token")
    if _TARGET.fullmatch(target) is None:
        raise ValueError("the target is not '/' and printable bytes without spaces")
    lines = [b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (method, target, host_value(origin))]
    for name, value in headers:
        _check(name, value)
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


def host_value(origin: Origin) -> bytes:
    """Value of `host`: brackets around IPv6, the port unless it is the scheme's own.

    Raises:
        ValueError: the host holds what may not go into a head.
    """
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    if origin.port != _DEFAULT_PORTS.get(origin.scheme):
        host = f"{host}:{origin.port}"
    value = host.encode("ascii", "strict")
    if b" " in value or _FORBIDDEN_IN_VALUE.search(value):
        raise ValueError("the host holds a space or a control character")
    return value


def _check(name: bytes, value: bytes) -> None:
    if _TOKEN.fullmatch(name) is None:
        raise ValueError(f"the field name {name!r} is no token")
    if name.lower() in _OURS:
        raise ValueError(f"the field {name!r} is written by the client")
    if _FORBIDDEN_IN_VALUE.search(value):
        raise ValueError(f"the value of {name!r} holds a control character")
