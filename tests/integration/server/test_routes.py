"""Every path of the data plane, its methods and its errors."""

import json

import pytest

from outlast.errors import AttemptSummary, GatewayError
from outlast.server.routes import ServerSettings


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/api/v1/chat/completions", "/openai/v1/chat/completions"]
)
def test_a_call_reaches_the_engine_with_body_headers_and_id(serve, post, path):
    async def scenario(rig):
        answer = await rig.ask(post(b'{"a":1}', "X-Request-Id: abc.D-1_", "X-Twice: 1", path=path))
        assert (answer.status, answer.body) == (200, b'{"bytes":7}')
        assert answer.headers["x-request-id"] == "abc.D-1_"
        assert "server" not in answer.headers
        assert "date" in answer.headers
        (call,) = rig.engine.calls
        assert (call.request_id, call.dialect, call.body) == ("abc.D-1_", "openai", b'{"a":1}')
        assert (b"x-twice", b"1") in call.headers

    serve(scenario)


def test_a_request_id_that_cannot_be_trusted_is_replaced(serve, post, get):
    async def scenario(rig):
        seen = set()
        for given in ["a b", "x" * 129, "é", ""]:
            answer = await rig.ask(post(b"{}", f"X-Request-Id: {given}"))
            assert answer.headers["x-request-id"] != given
            assert len(answer.headers["x-request-id"]) == 32
            seen.add(answer.headers["x-request-id"])
        assert len(seen) == 4
        longest = "x" * 128
        answer = await rig.ask(post(b"{}", f"X-Request-Id: {longest}"))
        assert answer.headers["x-request-id"] == longest
        answer = await rig.ask(get("/nowhere", f"X-Request-Id: {longest}"))
        assert answer.headers["x-request-id"] == longest

    serve(scenario)


def test_models_are_listed_in_the_openai_shape(serve, get):
    async def scenario(rig):
        listed = json.loads((await rig.ask(get("/v1/models"))).body)
        assert listed["object"] == "list"
        assert [m["id"] for m in listed["data"]] == ["fast", "acme/large"]
        assert listed["data"][0] == {
            "id": "fast",
            "object": "model",
            "created": 0,
            "owned_by": "outlast",
        }
        for path in ["/v1/models/acme/large", "/v1/models/acme%2Flarge"]:
            assert json.loads((await rig.ask(get(path))).body)["id"] == "acme/large"
        answer = await rig.ask(get("/v1/models/nope"))
        assert (answer.status, answer.code) == (404, "model_not_found")

    serve(scenario)


@pytest.mark.parametrize(
    ("path", "body"), [("/healthz", b'{"status":"ok"}'), ("/livez", b'{"status":"ok"}')]
)
def test_health_pages_say_ok(serve, get, path, body):
    async def scenario(rig):
        answer = await rig.ask(get(path))
        assert (answer.status, answer.body) == (200, body)

    serve(scenario)


def test_readiness_names_the_reason_it_is_missing(serve, get):
    async def scenario(rig):
        assert (await rig.ask(get("/readyz"))).status == 200
        rig.pages.reason = "no configuration"
        answer = await rig.ask(get("/readyz"))
        assert answer.status == 503
        assert json.loads(answer.body) == {"status": "not ready", "reason": "no configuration"}

    serve(scenario)


def test_the_root_says_what_this_is_and_head_sends_no_body(serve, get):
    async def scenario(rig):
        answer = await rig.ask(get("/"))
        assert answer.status == 200
        assert b"Outlast" in answer.body
        caller = await rig.connect()
        caller.send(get("/", method="HEAD") + get("/healthz"))
        head = await caller.answer(bodiless=True)
        assert int(head.headers["content-length"]) == len(answer.body)
        assert (await caller.answer()).body == b'{"status":"ok"}'

    serve(scenario)


def test_wrong_methods_and_unknown_paths_get_json_errors(serve, get, post):
    async def scenario(rig):
        for method in ["GET", "OPTIONS", "PUT", "DELETE"]:
            answer = await rig.ask(get("/v1/chat/completions", method=method))
            assert (answer.status, answer.code) == (405, "method_not_allowed")
            assert answer.headers["allow"] == "POST"
        answer = await rig.ask(post(path="/healthz"))
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        for path in ["/v1", "/v1/chat/completions/", "/v1/models/", "/%00"]:
            answer = await rig.ask(get(path))
            assert (answer.status, answer.code) == (404, "unknown_path")
            assert answer.headers["x-should-retry"] == "false"
        assert rig.engine.calls == []

    serve(scenario)


def test_operator_pages_are_open_on_loopback(serve, get):
    async def scenario(rig):
        stats = await rig.ask(get("/stats"))
        assert (stats.status, stats.body) == (200, b'{"requests":0}')
        metrics = await rig.ask(get("/metrics"))
        assert metrics.body == b"outlast_build_info 1\n"
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")

    serve(scenario)


@pytest.mark.parametrize("path", ["/stats", "/metrics"])
def test_operator_pages_elsewhere_need_the_token(serve, get, path):
    async def scenario(rig):
        assert (await rig.ask(get(path, "Authorization: Bearer s3cret"))).status == 200
        assert (await rig.ask(get(path, "Authorization: bearer s3cret"))).status == 200
        for given in ["Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret", "Bearer"]:
            answer = await rig.ask(get(path, f"Authorization: {given}"))
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert b"s3c" not in answer.body
        assert (await rig.ask(get(path))).status == 401

    serve(scenario, settings=ServerSettings(metrics_token="s3cret", loopback=False))


def test_operator_pages_elsewhere_without_a_token_explain_what_to_set(serve, get):
    async def scenario(rig):
        answer = await rig.ask(get("/metrics", "Authorization: Bearer None"))
        assert answer.status == 403
        assert b"telemetry.metrics_token" in answer.body

    serve(scenario, settings=ServerSettings(loopback=False))


def test_an_error_of_the_engine_is_rendered_with_its_headers(serve, post):
    tried = AttemptSummary("A", "a", 500, "provider_unavailable")

    async def fail(call, responder):
        raise GatewayError(
            502,
            "all_routes_failed",
            "All failed.",
            error_type="provider_unavailable",
            retryable=True,
            retry_after_s=1.2,
            attempts=(tried, tried),
            failovers=1,
        )

    async def scenario(rig):
        rig.engine.behaviour = fail
        caller = await rig.connect()
        for _ in range(2):  # the connection survives
            caller.send(post())
            answer = await caller.answer()
            assert (answer.status, answer.code) == (502, "all_routes_failed")
            assert answer.headers["retry-after"] == "2"
            assert answer.headers["x-outlast-attempts"] == "2"
            assert json.loads(answer.body)["routing"] == {"failovers": 1, "attempts": 2}
            names = [name for name, _ in answer.fields]
            assert len(names) == len(set(names))

    serve(scenario)


def test_a_defect_is_a_500_without_details_and_is_told_once(serve, post):
    async def crash(call, responder):
        raise ValueError("the prompt was: secret")

    async def scenario(rig):
        rig.engine.behaviour = crash
        answer = await rig.ask(post(b"{}", "X-Request-Id: r1"))
        assert (answer.status, answer.code) == (500, "internal_error")
        assert b"secret" not in answer.body
        ((request_id, error),) = rig.crashes
        assert request_id == "r1"
        assert isinstance(error, ValueError)

    serve(scenario)


def test_a_defect_after_the_head_cuts_the_body_short(serve, post):
    async def crash(call, responder):
        await responder.start(200, [])
        await responder.write(b"half")
        raise ValueError

    async def forget(call, responder):
        await responder.start(200, [])
        await responder.write(b"half")

    async def scenario(rig):
        for behaviour in [crash, forget]:
            rig.engine.behaviour = behaviour
            caller = await rig.connect()
            caller.send(post())
            got = b""
            try:
                while part := await caller.reader.read(65536):
                    got += part
            except ConnectionResetError:
                pass
            assert b"0\r\n\r\n" not in got
        assert len(rig.crashes) == 2

    serve(scenario)


def test_an_engine_that_answers_nothing_is_a_defect(serve, post):
    async def nothing(call, responder):
        pass

    async def scenario(rig):
        rig.engine.behaviour = nothing
        assert (await rig.ask(post())).status == 500
        assert len(rig.crashes) == 1

    serve(scenario)


def test_a_defect_of_a_page_is_a_500(serve, get, monkeypatch):
    async def scenario(rig):
        def broken():
            raise KeyError("x")

        monkeypatch.setattr(rig.pages, "metrics", broken)
        assert (await rig.ask(get("/metrics"))).status == 500
        assert len(rig.crashes) == 1

    serve(scenario)


def test_compressed_bodies_are_refused(serve, post):
    async def scenario(rig):
        assert (await rig.ask(post(b"{}", "Content-Encoding: identity"))).status == 200
        answer = await rig.ask(post(b"{}", "Content-Encoding: gzip"))
        assert (answer.status, answer.headers["connection"]) == (415, "close")
        assert len(rig.engine.calls) == 1

    serve(scenario)


@pytest.mark.parametrize("value", [b"1\r\nx-smuggled: 2", b"1\nx-smuggled: 2", b"1\r", b"\x00"])
def test_a_field_that_would_begin_another_one_never_leaves(serve, post, value):
    async def scenario(rig):
        async def answer(_call, responder):
            await responder.whole(200, [(b"x-field", value)], b"answer")

        rig.engine.behaviour = answer
        caller = await rig.connect()
        caller.send(post(b"{}", "Connection: close"))
        assert b"x-smuggled: 2" not in (await caller.rest()).split(b"\r\n")
        rig.crashes.clear()

    serve(scenario)


@pytest.mark.parametrize("size", [0, 1, 200_000])
def test_a_whole_answer_arrives_whole_and_the_connection_lives_on(serve, post, size):
    async def scenario(rig):
        async def answer(_call, responder):
            await responder.whole(200, [], b"x" * size)

        rig.engine.behaviour = answer
        caller = await rig.connect()
        for _ in range(3):
            caller.send(post(b"{}"))
            got = await caller.answer()
            assert (got.status, len(got.body)) == (200, size)
            assert [name for name, _ in got.fields].count("content-length") == 1

    serve(scenario)


def test_an_error_that_cannot_be_worded_is_a_500_like_any_defect(serve, post):
    async def scenario(rig):
        async def fail(_call, _responder):
            raise GatewayError(503, "x", "m", error_type="server", retry_at=1e15)

        rig.engine.behaviour = fail
        answer = await rig.ask(post(b"{}"))
        assert (answer.status, answer.code) == (500, "internal_error")
        assert len(rig.crashes) == 1
        rig.crashes.clear()

    serve(scenario)
