import json

import pytest
from msgspec import Raw

from outlast.errors import GatewayError
from outlast.protocols.openai import OPENAI

MESSAGES = b'"messages":[{"role":"user","content":"my secret prompt"}]'


def body(*members: bytes) -> bytes:
    return b"{" + b",".join((b'"model":"m"', MESSAGES, *members)) + b"}"


def refused(data: bytes) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        OPENAI.decode(data)
    error = caught.value
    assert error.status == 400
    assert error.gateway_code in {"invalid_request", "invalid_parameter"}
    assert "secret" not in error.message
    return error


def test_a_plain_request_is_read():
    request = OPENAI.decode(body(b'"temperature":1.0'))
    assert (request.dialect, request.model) == ("openai", "m")
    assert (request.stream, request.usage_asked) == (False, False)
    assert bytes(request.members["temperature"]) == b"1.0"


@pytest.mark.parametrize(
    ("members", "stream", "usage_asked"),
    [
        ([b'"stream":true'], True, False),
        ([b'"stream":null'], False, False),
        ([b'"stream":true', b'"stream_options":null'], True, False),
        ([b'"stream":true', b'"stream_options":{}'], True, False),
        ([b'"stream":true', b'"stream_options":{"include_usage":null}'], True, False),
        ([b'"stream":true', b'"stream_options":{"include_usage":false}'], True, False),
        ([b'"stream":true', b'"stream_options":{"include_usage":true}'], True, True),
        ([b'"stream_options":{"include_usage":true}'], False, False),
    ],
)
def test_a_wish_for_usage_belongs_to_a_stream(members, stream, usage_asked):
    request = OPENAI.decode(body(*members))
    assert (request.stream, request.usage_asked) == (stream, usage_asked)


@pytest.mark.parametrize(
    ("data", "param"),
    [
        (b"{" + MESSAGES + b"}", "model"),
        (b'{"model":"m"}', "messages"),
        (b'{"model":"m","messages":null}', "messages"),
    ],
)
def test_a_missing_member_is_named(data, param):
    error = refused(data)
    assert (error.gateway_code, error.param) == ("invalid_request", param)
    assert param in error.message


@pytest.mark.parametrize("model", [b'""', b"null", b"5", b'["m"]', b"{}"])
def test_a_model_that_is_no_name_is_refused(model):
    error = refused(b'{"model":' + model + b"," + MESSAGES + b"}")
    assert (error.gateway_code, error.param) == ("invalid_parameter", "model")


@pytest.mark.parametrize(
    ("member", "param"),
    [
        (b'"stream":"yes"', "stream"),
        (b'"stream":1', "stream"),
        (b'"stream_options":true', "stream_options"),
        (b'"stream_options":{"include_usage":1}', "stream_options.include_usage"),
    ],
)
def test_a_member_of_a_wrong_type_is_named(member, param):
    error = refused(body(member))
    assert (error.gateway_code, error.param) == ("invalid_parameter", param)


@pytest.mark.parametrize("name", ["provider", "models", "outlast"])
@pytest.mark.parametrize("value", ['{"order":["a"]}', '["a"]', '"a"', "0", "false", "true"])
def test_routing_by_request_is_refused_by_its_name(name, value):
    error = refused(body(f'"{name}":{value}'.encode()))
    assert (error.gateway_code, error.param) == ("invalid_parameter", name)
    assert "not built yet" in error.message


@pytest.mark.parametrize("name", ["provider", "models", "outlast"])
@pytest.mark.parametrize("value", ["null", "{}", "{ }", "[]", "[ ]"])
def test_an_empty_routing_member_is_accepted_and_stripped(name, value):
    request = OPENAI.decode(body(f'"{name}":{value}'.encode()))
    assert name not in request.members
    assert name.encode() not in OPENAI.encode(request, "up")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b'"text"',
        b"null",
        b"\xef\xbb\xbf" + body(),
        body().decode().encode("utf-16"),
        body(b'"x":NaN'),
        body(b'"x":Infinity'),
        body(b'"x":-Infinity'),
        body(b'"x":"\xff"'),
        body(b'"x":"\xed\xa0\x80"'),
        body(b'"x":"\\ud800"'),
        body(b'"x":"a\x01b"'),
        body(b'"x":01'),
        body()[:-1],
        body() + b"{}",
        body(b'"x":' + b"[" * 100_000 + b"]" * 100_000),
    ],
)
def test_a_body_that_readers_could_understand_differently_is_refused(data):
    assert refused(data).gateway_code == "invalid_request"


def test_a_body_is_read_or_refused_at_any_depth():
    # The two parsers have different room on the stack: between their limits only one gives up.
    messages: set[str] = set()
    for depth in range(600, 1001):
        data = body(b' "x": ' + b"[" * depth + b"]" * depth)
        try:
            OPENAI.decode(data)
        except GatewayError as error:
            messages.add(error.message)
    assert messages <= {"The body is nested too deeply."}


@pytest.mark.parametrize(
    "data",
    [
        body(b'"model":"m"'),
        body(b'"model":"n"'),
        body(b'"x":1', b'"x":2'),
        body(b'"":1', b'"":1'),  # as long as its members are in the layout of json.dumps
        body(b'"x":1', b' "\\u0078" : 2'),
        json.dumps({"model": "m", "messages": [], "x": 1})[:-1].encode() + b', "x": 1}',
    ],
)
def test_a_member_that_stands_twice_is_refused(data):
    assert "twice" in refused(data).message


@pytest.mark.parametrize(
    "data",
    [
        body(),
        b" \r\n" + body() + b"\n",
        json.dumps(json.loads(body())).encode(),
        json.dumps(json.loads(body()), indent=2).encode(),
        body(b'"x":{"y":1,"y":2}', b' "big" : ' + b"9" * 5000, b'"float":1e400'),
        b'{"mod\\u0065l":"m",' + MESSAGES + b"}",
    ],
)
def test_any_layout_of_a_good_body_is_accepted(data):
    assert OPENAI.decode(data).model == "m"


def test_a_number_that_cannot_be_built_is_refused_only_where_it_must_be_read():
    assert refused(body(b'"stream":1e400')).param == "stream"
    assert OPENAI.decode(body(b'"seed":1e400')).members["seed"] == Raw(b"1e400")


@pytest.mark.parametrize(
    "layout", [b'{ "model" : "m" ,\r\n"messages" : [ 1 , %b ] }', b'{"messages":[%b],"model": "m"}']
)
def test_spaces_do_not_hide_a_member_that_stands_twice_and_are_no_offence(layout):
    plain = layout % b'{"a" : "b"}'
    assert OPENAI.decode(plain).model == "m"
    twice = plain[:-1] + b', "model" : "n"}'
    with pytest.raises(GatewayError, match="twice"):
        OPENAI.decode(twice)


def test_more_members_than_any_request_has_are_refused():
    many = b",".join(b'"k%d":1' % n for n in range(1001))
    with pytest.raises(GatewayError, match="more than 1000"):
        OPENAI.decode(b'{"model":"m","messages":[],' + many + b"}")
