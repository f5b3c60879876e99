"""What the command says when it is asked rather than run: help, version, plans."""

import json

import pytest
from tests.acceptance.process import finished

import outlast

pytestmark = pytest.mark.slow

FILE = """
providers:
  east: {dialect: openai, base_url: http://127.0.0.1:9001/v1}
  west: {dialect: openai, base_url: http://127.0.0.1:9002/v1}
deployments:
  big-east: {provider: east, upstream_model: big, serves: maker/big}
  big-west: {provider: west, upstream_model: big, serves: maker/big, enabled: false}
  big-spare: {provider: west, upstream_model: big-2, serves: maker/big}
pools:
  fast:
    failover: {deadline: 90s, max_failovers: 2}
    timeouts: {first_token: 4s, request: 40s}
    circuit_breaker: {consecutive_failures: 7}
    members: [{deployment: big-east}, {deployment: big-west}, {deployment: big-spare}]
"""


@pytest.fixture
def explain(tmp_path):
    """`outlast explain` with the file above."""
    (tmp_path / "outlast.yaml").write_text(FILE, encoding="utf-8")
    wide = {"COLUMNS": "160"}
    return lambda *words: finished(["explain", *words], tmp_path, wide)


def test_a_pools_plan_is_explained_without_sending_anything(explain):
    done = explain("fast")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == "fast: strategy order, label fast"
    assert lines[1].split() == [
        *("deployment", "provider", "first", "token", "whole", "answer", "tries", "trips", "at")
    ]
    assert " ".join(lines[2].split()) == "1 big-east east 4 s 40 s 3 7 in a row"
    assert " ".join(lines[3].split()) == "2 big-spare west 4 s 40 s 3 7 in a row"
    assert lines[4:6] == ["skipped big-west: disabled", "deadline 90 s, failovers at most 2"]
    assert lines[6].startswith("upstream calls at most ")
    assert len(lines) == 7


def test_a_models_plan_has_every_deployment_that_serves_it(explain):
    done = explain("maker/big")
    assert done.returncode == 0
    assert done.stdout.startswith("maker/big: strategy order, label direct\n")
    assert "big-east" in done.stdout
    assert "big-spare" in done.stdout
    assert "skipped big-west: disabled" in done.stdout


@pytest.mark.parametrize(("stream", "kind"), [(True, "stream"), (False, "whole answer")])
def test_a_body_is_explained_by_its_model_and_kind(explain, tmp_path, stream, kind):
    file = tmp_path / "body.json"
    file.write_text(json.dumps({"model": "fast", "stream": stream, "messages": []}))
    done = explain("--body", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"fast ({kind}): strategy order, label fast\n")
    assert done.stdout.splitlines()[1:] == explain("fast").stdout.splitlines()[1:]


@pytest.mark.parametrize("words", [("nope",), ("--body", "body.json")], ids=["name", "body"])
def test_a_name_that_nothing_answers_to_is_said(explain, tmp_path, words):
    (tmp_path / "body.json").write_text(json.dumps({"model": "nope", "messages": []}))
    done = explain(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "outlast: No model, pool or deployment is called 'nope'.",
        "Names: fast, maker/big, big-east, big-west, big-spare",
    ]


@pytest.mark.parametrize("data", [b"no json", b"[]", b'{"messages":[]}', b"\xff"], ids=repr)
def test_a_body_that_is_no_request_is_said(explain, tmp_path, data):
    file = tmp_path / "body.json"
    file.write_bytes(data)
    done = explain("--body", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("outlast: The body ")


@pytest.mark.parametrize("words", [(), ("fast", "--body", "x.json")], ids=["neither", "both"])
def test_a_plan_is_asked_for_by_name_or_by_body(explain, words):
    done = explain(*words)
    assert done.returncode == 2
    assert "give a MODEL or --body FILE, one of them" in done.stderr


def test_a_body_file_that_is_not_there_is_said(explain):
    done = explain("--body", "absent.json")
    assert done.returncode == 2
    assert "--body: cannot read 'absent.json': No such file or directory" in done.stderr


def test_the_version_is_the_packages(tmp_path):
    done = finished(["--version"], tmp_path)
    assert (done.returncode, done.stdout) == (0, f"outlast {outlast.__version__}\n")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), ["serve", "check", "explain", "--config", "--version"]),
        (("serve",), ["--insecure"]),
        (("check",), ["--effective", "--pool", "--insecure", "FILE"]),
        (("explain",), ["--body", "MODEL"]),
    ],
    ids=["outlast", "serve", "check", "explain"],
)
def test_help_names_every_word_that_the_command_knows(tmp_path, words, named):
    done = finished([*words, "--help"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [word for word in named if word not in done.stdout] == []


def test_a_word_that_it_does_not_know_is_a_usage_error(tmp_path):
    done = finished(["swerve"], tmp_path)
    assert done.returncode == 2
    assert "swerve" in done.stderr
