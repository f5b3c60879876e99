import json

import pytest

from outlast.model.fault import Fault, FaultKind
from outlast.model.usage import Usage
from outlast.protocols.dialect import WholeAnswer
from outlast.protocols.openai import OPENAI
from outlast.protocols.openai.answer import MODELS_MAX, read_usage

JSON = [(b"content-type", b"application/json")]


def whole(message: object, finish_reason: object = "stop", **more: object) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return json.dumps({"id": "c", "choices": [choice], **more}).encode()


def read(body: bytes, content_type: bytes = b"application/json") -> WholeAnswer:
    found = OPENAI.read_whole([(b"content-type", content_type)], body)
    assert isinstance(found, WholeAnswer)
    return found


def fault(body: bytes, headers: list[tuple[bytes, bytes]] = JSON) -> Fault:
    found = OPENAI.read_whole(headers, body)
    assert isinstance(found, Fault)
    return found


def test_an_answer_is_handed_on_byte_for_byte():
    body = b'{ "choices" : [ {"message":{"content":"\\u00e9"},"finish_reason":"stop"} ],"x":1.0}\n'
    assert read(body) == WholeAnswer(body, None)


@pytest.mark.parametrize("content_type", [b"Application/JSON; charset=utf-8", b"text/x+json", b""])
def test_json_may_be_named_in_its_ways(content_type):
    assert read(whole({"content": "hi"}), content_type).body == whole({"content": "hi"})


def test_an_answer_without_a_content_type_is_read():
    assert isinstance(OPENAI.read_whole([], whole({"content": "hi"})), WholeAnswer)


def test_the_content_type_is_found_among_other_fields():
    html = [(b"date", b"now"), (b"content-type", b"text/html"), (b"server", b"json")]
    assert fault(whole({"content": "hi"}), html).kind is FaultKind.MALFORMED_RESPONSE


@pytest.mark.parametrize("content_type", [b"text/html", b"text/event-stream", b"text/plain"])
def test_another_content_type_is_malformed(content_type):
    found = fault(whole({"content": "hi"}), [(b"content-type", content_type)])
    assert found.kind is FaultKind.MALFORMED_RESPONSE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html></html>",
        b"[]",
        b"null",
        b"{}",
        b'{"choices":null}',
        b'{"choices":[]}',
        b'{"choices":{}}',
        b'{"choices":["text"]}',
        b'{"choices":[{"message":{"content":"cut',
        b'{"choices":[{"message":{"content":"\xff"}}]}',
        b'{"choices":' + b"[" * 5000,
    ],
)
def test_what_is_no_chat_completion_is_malformed(body):
    assert fault(body).kind is FaultKind.MALFORMED_RESPONSE


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"error":{"message":"m","type":"server_error"}}', FaultKind.PROVIDER_5XX, 500),
        (b'{"error":{"code":429}}', FaultKind.PROVIDER_RATE_LIMITED, 429),
        (b'{"error":"m","choices":"none","code":503}', FaultKind.PROVIDER_5XX, 503),
        (whole({"content": "hi"}, error={"code": 402}), FaultKind.PROVIDER_BILLING, 402),
    ],
)
def test_an_error_inside_a_200_is_that_error(body, kind, status):
    assert (fault(body).kind, fault(body).status) == (kind, status)


@pytest.mark.parametrize("nothing", [None, {}, ""])
def test_an_empty_error_member_is_no_error(nothing):
    assert not read(whole({"content": "hi"}, error=nothing)).refused


@pytest.mark.parametrize(
    "message", [None, {}, {"content": None}, {"content": "", "tool_calls": []}]
)
def test_nothing_said_and_no_reason_is_an_empty_answer(message):
    assert fault(whole(message, None)).kind is FaultKind.EMPTY_RESPONSE


@pytest.mark.parametrize("message", [None, {"content": ""}])
def test_nothing_said_for_a_reason_is_an_answer(message):
    assert not read(whole(message)).refused


@pytest.mark.parametrize(
    "message",
    [
        {"content": "hi"},
        {"content": [{"type": "text", "text": "hi"}]},
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"refusal": "no"},
        {"tool_calls": [{"id": "1"}]},
        {"function_call": {"name": "f"}},
        {"audio": {"id": "a"}},
    ],
)
def test_output_without_a_reason_is_an_answer(message):
    assert read(whole(message, None)).refused is ("refusal" in message)


def test_a_content_filter_is_a_refusal():
    assert read(whole({"content": ""}, "content_filter")).refused


def test_usage_is_read_in_its_buckets():
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert read(whole({"content": "hi"}, usage=usage)).usage == Usage(10, 5, 4, 3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ([], None),
        ({}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": -5, "completion_tokens": "7"}, None),
        ({"prompt_tokens": 3.0, "prompt_tokens_details": None}, Usage(3)),
    ],
)
def test_usage_that_counts_nothing_is_none(value, expected):
    assert read_usage(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "none",
        {},
        {"prompt_tokens": 0},
        {"prompt_tokens": 7, "completion_tokens": None, "prompt_tokens_details": None},
        {"prompt_tokens": -7, "completion_tokens": 2**70},
        {"prompt_tokens": 7.0, "completion_tokens": "7"},
        {"prompt_tokens": True, "prompt_tokens_details": []},
        {"prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 1}},
        {"completion_tokens_details": {"reasoning_tokens": None}},
    ],
)
def test_usage_of_a_whole_answer_is_read_as_leniently_as_any(value):
    assert read(whole({"content": "hi"}, usage=value)).usage == read_usage(value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a":1}', b'{"a":1,"routing":{"x":1}}'),
        (b'{"a":{"b":{}}}\n', b'{"a":{"b":{}},"routing":{"x":1}}\n'),
        (b"{ }", b'{ "routing":{"x":1}}'),
        (b'{"a":"{"}', b'{"a":"{","routing":{"x":1}}'),
        (b'{"a":{"routing":1}}', b'{"a":{"routing":1},"routing":{"x":1}}'),
        (b'{"routing":null}', b'{"routing":null}'),
        (b"[1]", b"[1]"),
    ],
)
def test_routing_becomes_the_last_member_unless_there_is_one(body, expected):
    assert OPENAI.splice_routing(body, b'{"x":1}') == expected


def test_a_listing_gives_its_ids():
    assert OPENAI.read_models(b'{"object":"list","data":[{"id":"a","x":1},{"id":"b"}]}') == [
        "a",
        "b",
    ]
    assert OPENAI.read_models(b'[{"id":"a"}]') == ["a"]


def test_a_long_listing_is_cut():
    listing = json.dumps({"data": [{"id": str(n)} for n in range(MODELS_MAX + 5)]}).encode()
    assert OPENAI.read_models(listing) == [str(n) for n in range(MODELS_MAX)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b'{"data":{}}',
        b'{"data":[{"id":5}]}',
        b'{"data":[],"x":' + b"[" * 5000,
    ],
)
def test_what_is_no_listing_is_a_value_error(body):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's own
        OPENAI.read_models(body)
