import json
from typing import Any

from outlast.errors import AttemptSummary, GatewayError, invalid_parameter
from outlast.model.ids import DeploymentName
from outlast.model.plan import Skipped, SkipReason
from outlast.model.request import NeutralRequest
from outlast.protocols.openai import OPENAI

REQUEST = NeutralRequest("openai", "m", stream=True, usage_asked=False, members={})


def exhausted() -> GatewayError:
    return GatewayError(
        502,
        "all_routes_failed",
        "All providers tried for m failed.",
        error_type="provider_unavailable",
        retryable=True,
        normalized_code="timeout",
        attempts=(
            AttemptSummary("A", "a1", 429, "provider_rate_limited"),
            AttemptSummary("B", "b1", None, "timeout"),
            AttemptSummary("A", "a1", 500, "provider_unavailable"),
        ),
        skipped=(Skipped(DeploymentName("c1"), SkipReason.RESTING),),
        failovers=1,
    )


def test_the_body_of_a_total_failure_says_all_that_was_tried():
    body = json.loads(OPENAI.error_body(exhausted(), "r-1", b'{"failovers":1,"attempts":3}'))
    assert body == {
        "error": {
            "code": 502,
            "type": "api_error",
            "param": None,
            "message": "All providers tried for m failed.",
            "metadata": {
                "error_type": "provider_unavailable",
                "gateway_code": "all_routes_failed",
                "normalized_code": "timeout",
                "retryable": True,
                "providers_attempted": ["A", "B"],
                "attempts": [
                    {
                        "provider": "A",
                        "deployment": "a1",
                        "status": 429,
                        "code": "provider_rate_limited",
                    },
                    {"provider": "B", "deployment": "b1", "status": None, "code": "timeout"},
                    {
                        "provider": "A",
                        "deployment": "a1",
                        "status": 500,
                        "code": "provider_unavailable",
                    },
                ],
                "skipped": [{"deployment": "c1", "reason": "resting"}],
                "request_id": "r-1",
            },
        },
        "routing": {"failovers": 1, "attempts": 3},
    }


def test_a_caller_s_mistake_has_the_native_type_and_no_routing():
    body = json.loads(OPENAI.error_body(invalid_parameter("model", "no"), "r-1", None))
    assert body.keys() == {"error"}
    assert body["error"]["type"] == "invalid_request_error"
    assert (body["error"]["code"], body["error"]["param"]) == (400, "model")


def in_band(*fed: bytes) -> tuple[dict[str, Any], bytes]:
    reader = OPENAI.reader(REQUEST)
    for data in fed:
        reader.feed(data)
    frame, blank, rest = OPENAI.in_band(exhausted(), reader, "r-1").partition(b"\n\n")
    assert blank
    assert frame.startswith(b"data: ")
    return json.loads(frame[6:]), rest


def test_a_broken_stream_ends_with_an_error_chunk_and_the_terminal_event():
    chunk, rest = in_band()
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"] == [{"index": 0, "delta": {}, "finish_reason": "error"}]
    assert chunk["error"] == json.loads(OPENAI.error_body(exhausted(), "r-1", None))["error"]
    assert rest == b"data: [DONE]\n\n"


def test_the_error_chunk_carries_the_stream_s_own_marks():
    chunk, _ = in_band(
        b'data: {"id":"c1","model":"up","created":7,"choices":[]}\n\n',
        b'data: {"id":"c2","model":"other","created":8,"choices":[{"delta":{"content":"x"}}]}\n\n',
    )
    assert (chunk["id"], chunk["model"], chunk["created"]) == ("c1", "up", 7)


def test_a_stream_without_marks_gets_the_request_s():
    chunk, _ = in_band(b'data: {"id":5,"model":null,"created":"x","choices":[]}\n\n')
    assert (chunk["id"], chunk["model"], chunk["created"]) == ("chatcmpl-r-1", "", 0)


def test_a_reader_of_another_kind_has_no_marks():
    class Foreign:
        committed = True

    frame = OPENAI.in_band(exhausted(), Foreign(), "r-1")  # type: ignore[arg-type]
    assert b'"id":"chatcmpl-r-1"' in frame


def test_a_recovery_that_no_header_may_say_is_an_instant_in_the_body():
    error = GatewayError(
        503, "unavailable_route", "m", error_type="provider_overloaded", retry_at=1_800_000_000.0
    )
    body = json.loads(OPENAI.error_body(error, "r", None))
    assert body["error"]["metadata"]["retry_after"] == "2027-01-15T08:00:00+00:00"
