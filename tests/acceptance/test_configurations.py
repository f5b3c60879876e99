"""`outlast check FILE` and `outlast serve` say the same about every file there is."""

import os
import sys
from pathlib import Path

import pytest
from tests.acceptance.process import Gateway, finished

import outlast.cli
from outlast.config.load import load
from outlast.errors import ConfigError

CORPUS = Path(__file__).parents[1] / "conformance" / "config"
KEYS = {"OPENAI_API_KEY": "sk-from-env"}
GOOD = sorted((CORPUS / "good").glob("*.yaml"))
BAD = sorted((CORPUS / "bad").glob("*.yaml"))
SAMPLE = 4


def sample(files):
    """A few that stand far apart in the list."""
    return files[:: len(files) // SAMPLE][:SAMPLE]


@pytest.fixture
def command(monkeypatch, capsys):
    """The command's entry point, in this process: exit code, stdout, stderr."""
    for name in list(os.environ):
        if name.startswith("OUTLAST_") or name.endswith("_API_KEY") or name == "DEBUG_LOG":
            monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["outlast", *arguments])
        with pytest.raises(SystemExit) as ended:
            outlast.cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_check_and_serve_refuse_a_bad_file_in_the_same_words(path, command):
    checked = command("check", str(path))
    served = command("--config", str(path), "serve")
    assert checked[0] == served[0] == 2
    assert checked[2] == served[2]
    assert checked[1] == served[1] == ""
    with pytest.raises(ConfigError) as caught:
        load(path, KEYS)
    lines = checked[2].splitlines()
    assert lines[0].startswith("The configuration cannot be used (")
    assert lines[1:] == [f"  {problem}" for problem in caught.value.problems]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_check_takes_a_good_file_that_serve_would_load(path, command):
    loaded = load(path, KEYS)
    code, said, complaints = command("check", str(path))
    assert (code, complaints) == (0, "")
    *notes, last = said.splitlines()
    assert last.startswith(f"ok: {len(loaded.topology.providers)} provider")
    assert notes == [
        *(f"warning: {w}" for w in loaded.warnings),
        *(f"note: {a}" for a in loaded.aliases),
    ]
    assert command("--config", str(path), "check")[:2] == (0, said)


@pytest.mark.slow
@pytest.mark.parametrize("path", sample(GOOD), ids=lambda p: p.stem)
def test_the_installed_command_serves_a_good_file(path, tmp_path):
    checked = finished(["check", str(path)], tmp_path, KEYS)
    assert (checked.returncode, checked.stderr) == (0, "")
    listen = {"OUTLAST_LISTEN": "127.0.0.1:0"}
    gateway = Gateway(["--config", str(path), "serve"], tmp_path, {**KEYS, **listen})
    try:
        status, _, body = gateway.request("GET", "/v1/models")
        assert status == 200
        for pool in load(path, KEYS).topology.pools:
            assert f'"{pool}"'.encode() in body
    finally:
        gateway.kill()


@pytest.mark.slow
@pytest.mark.parametrize("path", sample(BAD), ids=lambda p: p.stem)
def test_the_installed_command_refuses_a_bad_file(path, tmp_path):
    checked = finished(["check", str(path)], tmp_path, KEYS)
    served = finished(["--config", str(path), "serve"], tmp_path, KEYS)
    assert checked.returncode == served.returncode == 2
    assert checked.stderr == served.stderr
    assert "Traceback" not in served.stderr
    assert checked.stdout == served.stdout == ""


@pytest.mark.parametrize("words", [("check",), ("serve",)], ids=lambda w: w[0])
def test_a_file_that_is_not_there_is_a_problem_and_no_crash(words, command, tmp_path):
    path = tmp_path / "absent.yaml"
    code, _, said = command("--config", str(path), *words)
    assert code == 2
    assert f"cannot read {str(path)!r}: No such file or directory" in said


def test_effective_values_say_where_they_come_from(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, said, _ = command("check", "--effective", str(CORPUS / "good" / "minimal.yaml"))
    assert code == 0
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.split()}
    assert rows["failover.deadline"][1:] == ["240s", "built-in"]
    assert "sk-from-env" not in said


def test_the_corpus_is_large_enough_to_mean_something():
    assert len(GOOD) + len(BAD) >= 25
    assert len(sample(GOOD)) == len(sample(BAD)) == SAMPLE
