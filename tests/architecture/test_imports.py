"""Who may import whom: the contracts stand in pyproject.toml."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.architecture.tree import ROOT, SOURCE

CONTRACTS_MIN = 4


def test_the_import_contracts_hold():
    command = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [command, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def test_the_contracts_cover_every_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    assert len(contracts) >= CONTRACTS_MIN
    layers = {
        word.strip()
        for contract in contracts
        if contract["type"] == "layers"
        for layer in contract["layers"]
        for word in layer.split("|")
    }
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages <= layers
