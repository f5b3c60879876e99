"""A final error as status, headers and body. Owns the headers; the dialect owns the body.

`Retry-After` is a promise that clients keep literally, so it is cut at 60 s: a longer wait says
60 and `x-should-retry: false`, which the official SDKs obey.
"""

from collections.abc import Mapping
from math import ceil

from outlast.errors import GatewayError
from outlast.ports import Headers
from outlast.protocols.dialect import Dialect

RETRY_AFTER_MAX_S = 60

Rendered = tuple[int, Headers, bytes]


def render(
    error: GatewayError, request_id: str, dialect: str, dialects: Mapping[str, Dialect]
) -> Rendered:
    """Render `error` for a caller of `dialect`."""
    routing = None
    if error.attempts:
        routing = b'{"failovers":%d,"attempts":%d}' % (error.failovers, len(error.attempts))
    body = dialects[dialect].error_body(error, request_id, routing)
    return error.status, error_headers(error, request_id), body


def error_headers(error: GatewayError, request_id: str) -> Headers:
    """The headers that every dialect shares."""
    headers: Headers = [
        (b"content-type", b"application/json"),
        (b"x-request-id", request_id.encode("ascii")),
        (b"x-outlast-gateway-code", error.gateway_code.encode("ascii")),
    ]
    retryable = error.retryable
    if error.retry_after_s is not None:
        wait_s = error.retry_after_s
        if wait_s > RETRY_AFTER_MAX_S:
            wait_s, retryable = float(RETRY_AFTER_MAX_S), False
        headers.append((b"retry-after", b"%d" % max(1, ceil(wait_s))))
        headers.append((b"retry-after-ms", b"%d" % max(1, ceil(wait_s * 1000))))
    headers.append((b"x-should-retry", b"true" if retryable else b"false"))
    if error.attempts:
        headers.append((b"x-outlast-failovers", b"%d" % error.failovers))
        headers.append((b"x-outlast-attempts", b"%d" % len(error.attempts)))
    return headers


def internal_error() -> GatewayError:
    """Our own defect. What it was stands in the log, under the request id."""
    return GatewayError(
        500,
        "internal_error",
        "The gateway failed. Its log has the details under this request id.",
        error_type="server",
        retryable=True,
        normalized_code="provider_unavailable",
    )


def draining() -> GatewayError:
    """The process is about to end; another instance answers."""
    return GatewayError(
        503,
        "gateway_draining",
        "The gateway is shutting down. Send the request again.",
        error_type="provider_overloaded",
        retryable=True,
        normalized_code="provider_unavailable",
        retry_after_s=1.0,
    )


def request_too_large(body_bytes_max: int) -> GatewayError:
    """A body above `server.request_body_max`."""
    return GatewayError(
        413,
        "request_too_large",
        f"The request body is larger than {body_bytes_max} bytes.",
        error_type="payload_too_large",
        normalized_code="invalid_request",
    )


def unsupported_encoding() -> GatewayError:
    """A compressed body."""
    return GatewayError(
        415,
        "unsupported_content_encoding",
        "Send the request body without Content-Encoding.",
        error_type="invalid_request",
        normalized_code="invalid_request",
    )


def unknown_path() -> GatewayError:
    """A path that is no route. It is not quoted: it may hold a key pasted in the wrong place."""
    return GatewayError(
        404,
        "unknown_path",
        "Nothing is served under this path. Use /v1 as the base URL; this version answers "
        "POST /v1/chat/completions and GET /v1/models there.",
        error_type="not_found",
        normalized_code="invalid_request",
    )


def wrong_method(allowed: bytes) -> GatewayError:
    """A method that the path does not take."""
    return GatewayError(
        405,
        "method_not_allowed",
        f"This path takes {allowed.decode('ascii')} only.",
        error_type="invalid_request",
        normalized_code="invalid_request",
    )


def unauthenticated() -> GatewayError:
    """Operator pages without their token."""
    return GatewayError(
        401,
        "invalid_key",
        "Send Authorization: Bearer with the telemetry.metrics_token.",
        error_type="authentication",
        normalized_code="unauthenticated",
    )


def token_not_set() -> GatewayError:
    """Operator pages that are closed because nothing could open them."""
    return GatewayError(
        403,
        "metrics_token_not_set",
        "This listener is reachable from elsewhere: set telemetry.metrics_token to open the page.",
        error_type="permission_denied",
        normalized_code="forbidden",
    )
