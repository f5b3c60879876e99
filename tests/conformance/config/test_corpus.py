"""Files that must load, and files whose problems must read exactly so.

A bad file begins with its expectation: `# problem: PATH: MESSAGE` lines, in order. A good one may
begin with `# warning:` and `# alias:` lines, which must be among what is reported.
"""

from pathlib import Path

import pytest

from outlast.config.load import load
from outlast.errors import ConfigError

HERE = Path(__file__).parent
ENV = {"OPENAI_API_KEY": "sk-from-env"}


def corpus(kind):
    return sorted((HERE / kind).glob("*.yaml"))


def expected(path, word):
    mark = f"# {word}: "
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]


@pytest.mark.parametrize("path", corpus("good"), ids=lambda p: p.stem)
def test_a_good_file_loads(path):
    loaded = load(path, ENV)
    assert loaded.origin == "file"
    assert loaded.warnings == expected(path, "warning")
    assert set(expected(path, "alias")) <= set(loaded.aliases)
    assert "sk-" not in repr(loaded)


@pytest.mark.parametrize("path", corpus("bad"), ids=lambda p: p.stem)
def test_a_bad_file_says_everything_that_is_wrong(path):
    with pytest.raises(ConfigError) as caught:
        load(path, ENV)
    assert [str(problem) for problem in caught.value.problems] == expected(path, "problem")
    assert "sk-" not in str(caught.value)


def test_the_corpus_is_there():
    assert len(corpus("good")) >= 14
    assert len(corpus("bad")) >= 14
    assert all(expected(path, "problem") for path in corpus("bad"))
