"""A newcomer's first minute: no file, no key, and the printed line shows a failover."""

import json
import shlex
import shutil
import signal
import socket
import subprocess
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from tests.acceptance.process import Gateway, environment, finished

from outlast.sim.answers import read_text

pytestmark = pytest.mark.slow

ANY_PORT = {"OUTLAST_LISTEN": "127.0.0.1:0"}
STOPS_WITHIN_S = 5.0


@pytest.fixture
def start(tmp_path):
    """Start `outlast serve` in an empty home."""
    started = []

    def begin(env=ANY_PORT):
        gateway = Gateway(["serve"], tmp_path, env)
        started.append(gateway)
        return gateway

    yield begin
    for gateway in started:
        gateway.kill()


def printed_line(gateway):
    """The line that is there to be tried."""
    lines = [line for line in gateway.stdout if line.strip().startswith("curl ")]
    assert len(lines) == 1, gateway.stdout.text
    return shlex.split(lines[0])


def by_hand(words):
    """What the printed line asks of curl, where there is none: status line, headers, body."""
    url = urlsplit(next(w for w in words if w.startswith("http://")))
    name, _, value = words[words.index("-H") + 1].partition(": ")
    connection = HTTPConnection(url.netloc, timeout=10)
    try:
        body = words[words.index("-d") + 1].encode()
        connection.request("POST", url.path, body, {name: value})
        answer = connection.getresponse()
        headers = {n.lower(): v for n, v in answer.getheaders()}
        return answer.status, headers, answer.read().decode()
    finally:
        connection.close()


def by_curl(words, home):
    done = subprocess.run(
        [*words, "-sS", "--noproxy", "*", "--max-time", "10"],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=15,
        check=True,
    )
    head, _, body = done.stdout.replace("\r\n", "\n").partition("\n\n")
    first, *fields = head.split("\n")
    pairs = (field.partition(": ") for field in fields)
    return int(first.split()[1]), {n.lower(): v for n, _, v in pairs}, body


def test_the_printed_line_shows_a_failover_that_the_caller_never_saw(start, tmp_path):
    gateway = start()
    words = printed_line(gateway)
    status, headers, body = by_curl(words, tmp_path) if shutil.which("curl") else by_hand(words)
    assert status == 200
    assert headers["x-outlast-failovers"] == "1"
    assert headers["x-outlast-degraded"] == "simulated"
    answer = json.loads(body)
    who = read_text(answer["choices"][0]["message"]["content"])
    assert who is not None
    assert who.provider == "sim-steady"
    assert answer["routing"]["failovers"] == 1


def test_the_banner_names_what_it_prints_and_the_pages_are_there(start):
    gateway = start()
    assert "the providers are simulated" in gateway.stdout.text
    assert "x-outlast-degraded: simulated" in gateway.stdout.text
    for page in ("/stats", "/metrics"):
        assert f"{gateway.url}{page}" in gateway.stdout.text
        assert gateway.request("GET", page)[0] == 200
    models = json.loads(gateway.request("GET", "/v1/models")[2])["data"]
    assert [model["id"] for model in models][:2] == ["sim/fast", "sim/flaky"]


@pytest.mark.parametrize("model", ["sim/fast", "sim/flaky"])
def test_the_simulated_models_answer_every_time_in_the_sdk(start, model):
    gateway = start()
    for number in range(6):
        chunks = gateway.client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert read_text(text) is not None, (number, text)
    gateway.client.close()
    assert gateway.stats()["totals"]["outcomes"] == {"ok": 6}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_a_signal_ends_it_well(start, number):
    gateway = start()
    gateway.request("GET", "/healthz")
    printed = gateway.stdout.text
    assert gateway.signal(number, limit_s=STOPS_WITHIN_S) == 0
    assert gateway.events() == ["draining"]
    assert gateway.stdout.text == printed


def test_everything_on_stderr_is_a_log_line(start):
    gateway = start()
    gateway.request("POST", "/v1/chat/completions", json.dumps({"model": "nobody"}).encode())
    gateway.request("POST", "/v1/chat/completions", b"no json")
    gateway.request("GET", "/nowhere")
    words = printed_line(gateway)
    by_hand(words)
    assert gateway.signal(signal.SIGINT) == 0
    events = gateway.events()
    assert events.count("request") == 3
    assert "failover_triggered" in events
    assert events[-1] == "draining"


def test_a_taken_port_is_said_with_the_setting_that_helps(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        where = f"127.0.0.1:{holder.getsockname()[1]}"
        done = finished(["serve"], tmp_path, {"OUTLAST_LISTEN": where})
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"outlast: cannot listen on {where}")
    assert "server.listen" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_keys_of_vendors_that_are_not_built_are_named_and_not_used(start):
    gateway = start({**ANY_PORT, "ANTHROPIC_API_KEY": "sk-ant-canary"})
    assert "the providers are simulated" in gateway.stdout.text
    assert "warning: ANTHROPIC_API_KEY: " in gateway.stderr.text
    assert "canary" not in gateway.stdout.text + gateway.stderr.text
