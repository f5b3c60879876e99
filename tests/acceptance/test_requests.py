"""What travels with a request, both ways."""

import json

import pytest
from tests.acceptance.street import KEY, well
from tests.acceptance.wire import chat

from outlast.sim.answers import read_text

pytestmark = pytest.mark.slow

PROMPT = [{"role": "user", "content": "hi"}]

MEMBERS = {
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": 'Says \N{SNOWMAN} or "sun" \\ rain',
                "parameters": {
                    "type": "object",
                    "properties": {"where": {"type": "string", "enum": ["è", ""]}},
                    "required": ["where"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        }
    ],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
    "temperature": 0.0,
    "seed": 12345678901234567890,
    "metadata": {"model": "not the model", "empty": None},
    "logit_bias": {"50256": -100},
    "stop": ["\n\n", "\u2028"],
    "user": "somebody",
}


@pytest.fixture(scope="module")
def gateway(street):
    street.open("one", well("one"))
    return street.gateway({"pool": ["one"]})


def received(street):
    return json.loads(street.at["one"].requests[-1].body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_member_but_the_model_reaches_the_provider_unchanged(street, gateway, stream):
    """A stream is asked for its usage too, unseen by the caller, because tokens are counted."""
    given = {**MEMBERS, "messages": PROMPT, "stream": stream}
    given["stream_options"] = {"include_usage": True} if stream else None
    answer = gateway.client.chat.completions.create(
        model="pool", extra_body={"of_tomorrow": [1, {}]}, **given
    )
    if stream:
        assert list(answer)
    assert received(street) == {**given, "of_tomorrow": [1, {}], "model": "model-at-one"}


def test_the_bytes_of_members_stay_as_the_caller_spelt_them(street, gateway):
    body = (
        b'{ "model":"pool", "messages": [ {"role":"user","content":"hi"} ],\n'
        b'"n": 1.0,  "x":1e400 , "big":123456789012345678901234,'
        b' "t":"\\u00e9\\/\\ud83d\\ude00" }'
    )
    assert gateway.request("POST", "/v1/chat/completions", body)[0] == 200
    arrived = street.at["one"].requests[-1].body
    for spelling in (
        b'[ {"role":"user","content":"hi"} ]',
        b'"n":1.0',
        b'"x":1e400',
        b'"big":123456789012345678901234',
        b'"t":"\\u00e9\\/\\ud83d\\ude00"',
        b'"model":"model-at-one"',
    ):
        assert spelling in arrived


def test_a_stream_that_asks_for_usage_gets_it_with_its_routing(gateway):
    chunks = list(
        gateway.client.chat.completions.create(
            model="pool", messages=PROMPT, stream=True, stream_options={"include_usage": True}
        )
    )
    last = chunks[-1]
    assert last.choices == []
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (7, 8)
    assert last.model_extra["routing"] == {
        "strategy": "order",
        "selected_provider": "one",
        "selected_deployment": "one",
        "failovers": 0,
        "attempts": 1,
    }
    assert [c for c in chunks[:-1] if c.usage is not None or "routing" in c.model_extra] == []
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert read_text(text) is not None


def test_a_stream_that_does_not_ask_for_usage_gets_no_usage_chunk(gateway):
    chunks = list(
        gateway.client.chat.completions.create(model="pool", messages=PROMPT, stream=True)
    )
    assert [c for c in chunks if c.usage is not None or not c.choices] == []


def test_a_whole_answer_has_usage_and_routing(gateway):
    answer = gateway.client.chat.completions.create(model="pool", messages=PROMPT)
    assert answer.usage.total_tokens == 15
    assert answer.model == "model-at-one"
    assert answer.model_extra["routing"]["selected_deployment"] == "one"


def test_the_provider_gets_its_own_key_and_never_the_callers(street, gateway):
    gateway.client.chat.completions.create(
        model="pool", messages=PROMPT, extra_headers={"cookie": "a=b", "openai-beta": "x=v1"}
    )
    headers = street.at["one"].requests[-1].headers
    fields = dict(headers)
    assert fields[b"authorization"] == f"Bearer {KEY}".encode()
    assert fields[b"openai-beta"] == b"x=v1"
    assert b"cookie" not in fields
    assert not [n for n, v in headers if b"sk-of-the-caller" in v or n.startswith(b"x-stainless")]


@pytest.mark.parametrize("given", ["mine-1.2_3", "x" * 129, "no spaces", ""], ids=repr)
def test_a_usable_request_id_is_kept_and_any_other_replaced(gateway, given):
    headers = {"x-request-id": given}
    _, answered, _ = gateway.request("POST", "/v1/chat/completions", chat("pool"), headers)
    assert (answered["x-request-id"] == given) == (given == "mine-1.2_3")
    assert answered["x-request-id"]
