import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.model.fault import FaultKind
from outlast.protocols.openai import OPENAI
from outlast.protocols.openai.faults import MESSAGE_CHARS_MAX, embedded_fault

WALL = 1_764_482_400.0  # Sun, 30 Nov 2025 06:00:00 GMT


def kind(status: int, body: bytes = b"") -> FaultKind:
    return OPENAI.read_error(status, [], body, WALL).kind


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([500, 501, 502, 503, 504, 505, 520, 529, 599], FaultKind.PROVIDER_5XX),
        ([429], FaultKind.PROVIDER_RATE_LIMITED),
        ([402], FaultKind.PROVIDER_BILLING),
        ([401, 403], FaultKind.PROVIDER_AUTH),
        ([404, 410], FaultKind.PROVIDER_NOT_FOUND),
        ([408], FaultKind.TIMEOUT),
        ([409, 424, 425], FaultKind.TRANSIENT_CONFLICT),
        ([413], FaultKind.REQUEST_TOO_LARGE),
        ([400, 405, 415, 418, 422, 451], FaultKind.CALLER_ERROR),
        ([101, 204, 206, 301, 302, 304, 307, 600], FaultKind.MALFORMED_RESPONSE),
    ],
)
def test_a_status_has_its_row(statuses, expected):
    for status in statuses:
        fault = OPENAI.read_error(status, [], b"", WALL)
        assert (fault.kind, fault.status) == (expected, status)


@pytest.mark.parametrize("status", [400, 402, 403, 429])
@pytest.mark.parametrize("member", ["code", "type"])
def test_a_spent_quota_is_a_matter_of_the_bill(status, member):
    body = json.dumps({"error": {"message": "m", member: "insufficient_quota"}}).encode()
    assert kind(status, body) is FaultKind.PROVIDER_BILLING


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"error":{"code":"insufficient_quota"}}'),
        (404, b'{"error":{"code":"insufficient_quota"}}'),
    ],
)
def test_a_quota_word_elsewhere_leaves_the_status_its_meaning(status, body):
    assert kind(status, body) is kind(status)


def test_words_in_a_message_decide_nothing():
    body = b'{"error":{"message":"insufficient_quota content_filter","code":"x"}}'
    assert kind(429, body) is FaultKind.PROVIDER_RATE_LIMITED
    assert kind(400, body) is FaultKind.CALLER_ERROR


@pytest.mark.parametrize("code", ["content_policy_violation", "content_filter"])
def test_a_policy_code_on_400_is_a_refusal_and_elsewhere_not(code):
    body = json.dumps({"error": {"code": code}}).encode()
    assert kind(400, body) is FaultKind.REFUSAL
    assert kind(500, body) is FaultKind.PROVIDER_5XX


def test_a_prompt_that_is_too_long_keeps_its_code():
    body = b'{"error":{"message":"m","code":"context_length_exceeded","param":"messages"}}'
    fault = OPENAI.read_error(400, [], body, WALL)
    assert fault.kind is FaultKind.CALLER_ERROR
    assert (fault.code, fault.param, fault.message) == ("context_length_exceeded", "messages", "m")


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b'{"error":{"message":"m","code":"c","type":"t"}}', "c", "m"),
        (b'{"error":{"message":"m","code":null,"type":"t"}}', "t", "m"),
        (b'{"error":{"message":"m","code":1301}}', "1301", "m"),
        (b'{"object":"error","message":"m","type":"BadRequestError","code":400}', "400", "m"),
        (b'{"message":"m"}', None, "m"),
        (b'[{"error":{"message":"m","code":400}}]', "400", "m"),
        (b'{"error":"m"}', None, "m"),
        (b'{"error":"m","code":"c"}', "c", "m"),
        (b'{"error":null,"message":"m"}', None, "m"),
        (b'{"error":{"message":["m"],"code":true,"param":""}}', None, None),
        (b"[]", None, None),
        (b"[1,2]", None, None),
        (b"5", None, None),
        (b"<html>busy</html>", None, None),
        (b"\xff\xfe", None, None),
        (b"", None, None),
        (b"[" * 5000, None, None),
    ],
)
def test_an_error_object_is_found_where_vendors_put_it(body, code, message):
    fault = OPENAI.read_error(400, [], body, WALL)
    assert (fault.code, fault.message, fault.param) == (code, message, None)


def test_a_long_message_is_cut():
    body = json.dumps({"error": {"message": "x" * 10_000}}).encode()
    fault = OPENAI.read_error(400, [], body, WALL)
    assert fault.message == "x" * MESSAGE_CHARS_MAX


def test_the_detail_for_operators_quotes_nothing_of_the_body():
    fault = OPENAI.read_error(400, [], b'{"error":{"message":"secret","code":"secret"}}', WALL)
    assert "secret" not in fault.detail


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ([], None),
        ([(b"retry-after", b"7")], 7.0),
        ([(b"retry-after", b" 1.5 ")], 1.5),
        ([(b"retry-after", b"0")], 0.0),
        ([(b"retry-after-ms", b"250"), (b"retry-after", b"1")], 0.25),
        ([(b"retry-after-ms", b"soon"), (b"retry-after", b"1")], 1.0),
        ([(b"retry-after", b"-1")], None),
        ([(b"retry-after", b"")], None),
        ([(b"retry-after", b"nan")], None),
        ([(b"retry-after", b"inf")], None),
        ([(b"retry-after", b"1e9")], None),
        ([(b"retry-after", b"9" * 400)], None),
        ([(b"retry-after", b"tomorrow")], None),
        ([(b"retry-after", b"Sun, 30 Nov 2025 06:00:30 GMT")], 30.0),
        ([(b"retry-after", b"Sun, 30 Nov 2025 06:00:30 -0000")], 30.0),
        ([(b"retry-after", b"Sunday, 30-Nov-25 06:00:30 GMT")], 30.0),
        ([(b"retry-after", b"Sun, 30 Nov 2025 05:59:59 GMT")], None),
        ([(b"retry-after", b"Sun, 99 Nov 2025 06:00:30 GMT")], None),
    ],
)
def test_a_wait_is_read_as_seconds_from_now(headers, delay_s):
    assert OPENAI.read_error(429, headers, b"", WALL).retry_after_s == delay_s


def test_a_date_without_a_zone_is_gmt_wherever_the_gateway_runs(monkeypatch):
    headers = [(b"retry-after", b"Sun, 30 Nov 2025 06:00:30 -0000")]
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            assert OPENAI.read_error(429, headers, b"", WALL).retry_after_s == 30.0
    finally:
        time.tzset()


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_retry_after_can_break_the_reading(value):
    delay_s = OPENAI.read_error(429, [(b"retry-after", value)], b"", WALL).retry_after_s
    assert delay_s is None or delay_s >= 0


@given(st.integers(100, 599), st.binary(max_size=80))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_error_body_can_break_the_reading(status, body):
    assert OPENAI.read_error(status, [], body, WALL).status == status


@pytest.mark.parametrize(
    ("error", "status", "expected"),
    [
        ({"type": "overloaded_error"}, 529, FaultKind.PROVIDER_5XX),
        ({"type": "rate_limit_error"}, 429, FaultKind.PROVIDER_RATE_LIMITED),
        ({"type": "requests", "code": "rate_limit_exceeded"}, 429, FaultKind.PROVIDER_RATE_LIMITED),
        ({"type": "server_error"}, 500, FaultKind.PROVIDER_5XX),
        ({"type": "api_error"}, 500, FaultKind.PROVIDER_5XX),
        ({"type": "Service_Unavailable"}, 503, FaultKind.PROVIDER_5XX),
        ({"type": "invalid_request_error"}, 400, FaultKind.CALLER_ERROR),
        ({"type": "authentication_error"}, 401, FaultKind.PROVIDER_AUTH),
        ({"code": "content_filter"}, 400, FaultKind.REFUSAL),
        ({"code": "insufficient_quota"}, 429, FaultKind.PROVIDER_BILLING),
        ({"code": "model_not_found"}, 404, FaultKind.PROVIDER_NOT_FOUND),
        ({"code": 429, "type": "x"}, 429, FaultKind.PROVIDER_RATE_LIMITED),
        ({"code": "503"}, 503, FaultKind.PROVIDER_5XX),
        ({"status": 408}, 408, FaultKind.TIMEOUT),
        ({"code": 1301}, 500, FaultKind.PROVIDER_5XX),
        ({"code": "strange", "type": "stranger"}, 500, FaultKind.PROVIDER_5XX),
        ({"message": "m"}, 500, FaultKind.PROVIDER_5XX),
        ("m", 500, FaultKind.PROVIDER_5XX),
        (True, 500, FaultKind.PROVIDER_5XX),
    ],
)
def test_an_error_inside_a_200_means_what_it_says(error, status, expected):
    fault = embedded_fault({"error": error})
    assert (fault.status, fault.kind) == (status, expected)
