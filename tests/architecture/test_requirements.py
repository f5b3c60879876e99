"""What we depend on: pinned, hashed, and each with its reason."""

import re
import tomllib

import pytest
from tests.architecture.tree import ROOT

LOCKS = ("runtime.txt", "dev.txt")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME = [
    re.split(r"[<>=!~;\[ ]", requirement)[0] for requirement in SETTINGS["project"]["dependencies"]
]


def _pins(lock: str) -> list[str]:
    """Each requirement with its continuation lines, comments dropped."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("lock", LOCKS)
def test_no_package_index_is_named(lock):
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|--trusted-host", text)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_and_hashed(lock):
    pins = _pins(lock)
    assert pins
    for pin in pins:
        assert re.match(r"[a-zA-Z0-9._-]+(\[[^]]*\])?==\S+ ", pin), pin
        assert "--hash=sha256:" in pin, pin


@pytest.mark.parametrize("package", RUNTIME)
def test_a_runtime_dependency_is_locked(package):
    for lock in LOCKS:
        names = {re.split(r"[=\[ ]", pin)[0].lower() for pin in _pins(lock)}
        assert package.lower() in names


@pytest.mark.parametrize("package", RUNTIME)
def test_a_runtime_dependency_has_its_reason(package):
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{re.escape(package)}` \| \S.{{20,}} \|$", text, re.MULTILINE), (
        f"ARCHITECTURE.md, table of dependencies: say why {package} is there"
    )


def test_both_locks_agree():
    runtime, dev = ({pin.split("==")[0]: pin.split()[0] for pin in _pins(lock)} for lock in LOCKS)
    assert {n: p for n, p in dev.items() if n in runtime} == runtime
