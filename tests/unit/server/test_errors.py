"""Headers and rendering of final errors."""

from types import SimpleNamespace
from typing import Any

import pytest

from outlast.errors import AttemptSummary, GatewayError
from outlast.server import errors


def failure(**more) -> GatewayError:
    settings = {"error_type": "provider_overloaded", "retryable": True, **more}
    return GatewayError(503, "unavailable_route", "None is left.", **settings)


def headers_of(error: GatewayError) -> dict[bytes, bytes]:
    headers = errors.error_headers(error, "r1")
    assert len(dict(headers)) == len(headers)
    return dict(headers)


@pytest.mark.parametrize(
    ("wait_s", "seconds", "millis", "again"),
    [
        (0.0, b"1", b"1", b"true"),
        (0.2, b"1", b"200", b"true"),
        (1.0, b"1", b"1000", b"true"),
        (1.001, b"2", b"1001", b"true"),
        (60.0, b"60", b"60000", b"true"),
        (60.001, b"60", b"60000", b"false"),
        (86400.0, b"60", b"60000", b"false"),
    ],
)
def test_retry_after_is_whole_seconds_rounded_up_and_cut_at_a_minute(
    wait_s, seconds, millis, again
):
    headers = headers_of(failure(retry_after_s=wait_s))
    assert headers[b"retry-after"] == seconds
    assert headers[b"retry-after-ms"] == millis
    assert headers[b"x-should-retry"] == again


@pytest.mark.parametrize(("retryable", "said"), [(True, b"true"), (False, b"false")])
def test_should_retry_follows_the_error(retryable, said):
    headers = headers_of(failure(retryable=retryable))
    assert headers[b"x-should-retry"] == said
    assert b"retry-after" not in headers
    assert b"retry-after-ms" not in headers


def test_every_error_names_itself_and_its_request():
    headers = headers_of(failure())
    assert headers[b"x-request-id"] == b"r1"
    assert headers[b"x-outlast-gateway-code"] == b"unavailable_route"
    assert headers[b"content-type"] == b"application/json"
    assert b"x-outlast-attempts" not in headers


def test_attempts_are_counted_in_headers_and_routing():
    said = []

    def error_body(error, request_id, routing):
        said.append((error.gateway_code, request_id, routing))
        return b"{}"

    tried = AttemptSummary("A", "a", None, "timeout")
    error = failure(attempts=(tried, tried, tried), failovers=2)
    dialects: Any = {"openai": SimpleNamespace(error_body=error_body)}
    status, headers, body = errors.render(error, "r1", "openai", dialects)
    assert (status, body) == (503, b"{}")
    assert dict(headers)[b"x-outlast-failovers"] == b"2"
    assert dict(headers)[b"x-outlast-attempts"] == b"3"
    assert said == [("unavailable_route", "r1", b'{"failovers":2,"attempts":3}')]
    errors.render(failure(), "r1", "openai", dialects)
    assert said[1][2] is None


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [
        (errors.internal_error(), 500, True),
        (errors.draining(), 503, True),
        (errors.request_too_large(5), 413, False),
        (errors.unsupported_encoding(), 415, False),
        (errors.unknown_path(), 404, False),
        (errors.wrong_method(b"POST"), 405, False),
        (errors.unauthenticated(), 401, False),
        (errors.token_not_set(), 403, False),
    ],
)
def test_our_own_errors_have_their_status(error, status, retryable):
    assert (error.status, error.retryable) == (status, retryable)
    assert headers_of(error)[b"x-should-retry"] == (b"true" if retryable else b"false")
