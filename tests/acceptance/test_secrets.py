"""Keys and prompts are found nowhere: not in logs, pages or errors, whatever providers say."""

import json
import signal

import openai
import pytest
from tests.acceptance.street import voice
from tests.acceptance.wire import chat

from outlast.sim.answers import SSE_HEADERS, error_body, sse
from outlast.sim.calamities import CALAMITIES
from outlast.sim.provider import answer, good_answer, stream_parts, whole
from outlast.sim.script import Body, End, Head
from outlast.sim.sockets import closed_port

pytestmark = pytest.mark.slow

KEY = "canary-key-0123456789/abcdef+xyz"
HEADER = "canary-header-0123456789"
PROMPT = "canary-prompt-0123456789"
TOKEN = "canary-token-0123456789"
CANARIES = (KEY, HEADER, PROMPT, TOKEN)

ENV = {"KEY_CANARY": KEY, "HEADER_CANARY": HEADER, "TOKEN_CANARY": TOKEN, "DEBUG_LOG": "true"}
TRIPS_AT = 4
"""Each provider is asked alone and before another, for both kinds of answer: then it rests."""
STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 529)


def overheard(request):
    """Everything that a careless provider can quote from a request."""
    fields = {name: value.decode() for name, value in request.headers}
    prompt = json.loads(request.body)["messages"][0]["content"]
    return f"key {fields[b'authorization']}, secret {fields[b'x-secret']}, prompt {prompt}"


def quotes(request, kind="invalid_request_error"):
    return error_body(overheard(request), kind, overheard(request))


def with_status(status):
    return lambda request, _call, _rng: whole(
        status, quotes(request), ((b"content-type", b"application/json"), (b"x-said", KEY.encode()))
    )


def as_answer(request, _call, _rng):
    return whole(200, quotes(request))


def as_page(request, _call, _rng):
    return whole(200, overheard(request).encode(), ((b"content-type", b"text/html"),))


def as_status_line_of_nonsense(request, _call, _rng):
    return whole(302, quotes(request), ((b"location", f"http://x/?key={KEY}".encode()),))


def as_first_event(request, _call, _rng):
    event = b"data: " + quotes(request, "server_error") + b"\n\n"
    return (Head(200, SSE_HEADERS), Body(event), End())


def after_words(request, call, _rng):
    def chat_script(asked):
        if not asked.stream:
            return whole(200, quotes(request))
        parts = stream_parts(voice("midway").identity(call), asked)[:3]
        return (
            Head(200, SSE_HEADERS),
            *map(Body, parts),
            Body(sse({"error": {"message": overheard(request), "type": "server_error"}})),
            End(),
        )

    return answer(voice("midway"), request, chat_script)


def well(request, call, _rng):
    return answer(voice("well"), request, lambda asked: good_answer(voice("well"), asked, call))


BEHAVIOURS = {
    **{f"status-{status}": with_status(status) for status in STATUSES},
    "error-answer": as_answer,
    "page": as_page,
    "redirect": as_status_line_of_nonsense,
    "first-event": as_first_event,
    "midway": after_words,
    "reset": CALAMITIES["reset_before_head"].behaviour(voice("reset")),
    "hang": CALAMITIES["header_hang"].behaviour(voice("hang")),
    "cut": CALAMITIES["cut_after_commit"].behaviour(voice("cut")),
    "stall": CALAMITIES["stall_after_commit"].behaviour(voice("stall")),
    "well": well,
}
PROVIDER = {"api_key": {"env": "KEY_CANARY"}, "headers": {"x-secret": {"env": "HEADER_CANARY"}}}
OPERATOR = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def gateway(lane):
    """Each provider alone in a pool, and in one with a healthy second; nothing is ever retried."""
    with closed_port() as port:
        lane.closed("nobody", port)
        for name, behaviour in BEHAVIOURS.items():
            lane.open(name, behaviour)
        names = [*BEHAVIOURS, "nobody"]
        alone = {f"only-{name}": [name] for name in names}
        saved = {f"saved-{name}": [name, "well"] for name in names if name != "well"}
        yield lane.gateway(
            alone | saved,
            env=ENV,
            providers=dict.fromkeys(names, PROVIDER),
            retry={"when": "never"},
            circuit_breaker={
                "consecutive_failures": TRIPS_AT,
                "open_duration": "60s",
                "max_open_duration": "60s",
                "rate_limit": {"throttle": None},
                "hard_down": {"auth": "0s", "billing": "0s", "not_found": "0s"},
            },
            telemetry={"metrics_token": {"env": "TOKEN_CANARY"}},
        )


def assert_clean(text, where):
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    found = [canary for canary in CANARIES if canary in text or json.dumps(canary)[1:-1] in text]
    assert not found, f"{found} in {where}: {text[:2000]}"


def test_no_key_and_no_prompt_is_found_anywhere(gateway, lane):
    pools = [f"only-{name}" for name in (*BEHAVIOURS, "nobody")]
    pools += [f"saved-{name}" for name in (*BEHAVIOURS, "nobody") if name != "well"]
    seen = set()
    for pool in pools:
        for stream in (False, True):
            status, headers, body = gateway.request(
                "POST", "/v1/chat/completions", chat(pool, stream=stream, prompt=PROMPT)
            )
            seen.add(status)
            assert_clean(body, f"the body of {pool} ({status})")
            assert_clean(repr(headers), f"the headers of {pool} ({status})")
    assert {200, 400, 429, 502} <= seen
    for path in ("/stats", "/metrics"):
        status, _, page = gateway.request("GET", path, headers=OPERATOR)
        assert status == 200
        assert_clean(page, path)
    gateway.request("POST", "/v1/chat/completions", chat(PROMPT, prompt=PROMPT)[:-4])
    gateway.request("GET", f"/v1/{KEY}?key={KEY}", headers={"authorization": f"Bearer {KEY}"})
    assert gateway.signal(signal.SIGINT) == 0
    assert_clean(gateway.stdout.text, "stdout")
    assert_clean(gateway.stderr.text, "stderr")
    events = set(gateway.events())
    assert {"request", "failover_triggered", "breaker_transition", "draining"} <= events


@pytest.fixture
def relaying(lane):
    """A gateway before one provider that rejects requests as `say` (set by the test) words it."""
    lane.open("strict", with_status(400))
    gateway = lane.gateway({"pool": ["strict"]}, env=ENV, providers={"strict": PROVIDER})

    def rejected(say):
        lane.at["strict"].behaviour = lambda request, _call, _rng: whole(400, say(request))
        with pytest.raises(openai.BadRequestError) as caught:
            gateway.client.chat.completions.create(
                model="pool", messages=[{"role": "user", "content": "hi"}]
            )
        return caught.value.response.content

    return rejected


def test_a_rejection_that_quotes_our_key_is_worded_by_us(relaying):
    body = relaying(lambda _request: error_body(f"no {KEY}", "invalid_request_error"))
    assert_clean(body, "the body")
    assert json.loads(body)["error"]["metadata"]["gateway_code"] == "invalid_request"


ESCAPES = {
    "slash": KEY.replace("/", "\\/"),
    "hexadecimal": "".join(f"\\u{ord(character):04x}" for character in KEY),
}
"""The same key in JSON's other spellings (RFC 8259, section 7); PHP escapes slashes by default."""


@pytest.mark.parametrize("how", ESCAPES)
def test_a_rejection_that_quotes_our_key_with_escapes_is_worded_by_us(relaying, how):
    said = f'{{"error":{{"message":"no {ESCAPES[how]}","type":"invalid_request_error"}}}}'
    body = relaying(lambda _request: said.encode())
    assert_clean(json.dumps(json.loads(body)), "the body as an SDK reads it")


def test_a_rejection_that_quotes_a_configured_header_is_worded_by_us(relaying):
    body = relaying(lambda _request: error_body(f"no {HEADER}", "invalid_request_error"))
    assert_clean(body, "the body")


def test_a_rejection_that_quotes_our_key_as_a_parameter_is_worded_by_us(relaying):
    said = {"error": {"message": "no", "type": "invalid_request_error", "param": KEY}}
    assert_clean(relaying(lambda _request: json.dumps(said).encode()), "the body")
