import json

import pytest

from outlast.protocols.openai import OPENAI


def sent(body: bytes, model: str = "up") -> bytes:
    return OPENAI.encode(OPENAI.decode(body), model)


def test_only_the_model_changes():
    body = (
        b'{"seed":12345678901234567890123,"model":"m","t":1.0,"u":"\\u00e9\\/",'
        b'"messages":[ {"role" : "user"} ],"e":1e400,"z":{"a":1,"a":2}}'
    )
    assert sent(body) == body.replace(b'"model":"m"', b'"model":"up"')


def test_a_model_name_is_spelled_as_json():
    assert json.loads(sent(b'{"model":"m","messages":[]}', 'a"\\/é'))["model"] == 'a"\\/é'


def test_a_request_is_not_changed_by_its_spelling():
    request = OPENAI.decode(b'{"model":"m","messages":[],"stream":true}')
    assert OPENAI.encode(request, "a") != OPENAI.encode(request, "b")
    assert bytes(request.members["model"]) == b'"m"'
    assert "stream_options" not in request.members


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":null', b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":{}', b',"stream_options":{"include_usage":true}'),
        (
            b',"stream_options":{"include_usage":false}',
            b',"stream_options":{"include_usage":true}',
        ),
        (
            b',"stream_options":{"x":1.0},"n":1',
            b',"stream_options":{"x":1.0,"include_usage":true},"n":1',
        ),
        (
            b',"stream_options":{ "include_usage" : true }',
            b',"stream_options":{ "include_usage" : true }',
        ),
    ],
)
def test_a_stream_always_asks_for_usage(given, expected):
    start = b'{"model":"up","messages":[],"stream":true'
    assert sent(start + given + b"}") == start + expected + b"}"


def test_a_whole_answer_is_not_asked_for_stream_options():
    assert b"stream_options" not in sent(b'{"model":"m","messages":[]}')


def test_the_key_travels_as_bearer():
    assert OPENAI.auth("sk-1") == ((b"authorization", b"Bearer sk-1"),)


def test_without_a_key_no_header_is_sent():
    assert OPENAI.auth(None) == ()
