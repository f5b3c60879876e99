"""The reference pages hold everything that the source can say, and every link leads somewhere."""

import ast
import re
from pathlib import Path

import pytest
from tests.architecture.tree import ROOT, SOURCE, calls, files, name, parse

from outlast.config.load import parse_config
from outlast.config.reference import render as render_settings
from outlast.resilience.breaker import TRANSITIONS
from outlast.telemetry.lines import RequestLine
from outlast.telemetry.metrics import Metrics

DOCS = ROOT / "docs"
PAGES = files("*.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
ERROR_MAKERS = {"GatewayError": 1, "_error": 2, "Refusal": 1}
"""Callables that take a gateway code, and at which position."""


def _page(reference: str) -> str:
    return (DOCS / "reference" / reference).read_text(encoding="utf-8")


def _links(page: Path) -> list[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]


def test_every_metric_is_documented():
    page = _page("metrics.md")
    text = Metrics("1", lambda: [("a", "closed", 0)]).render().decode()
    families = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
    assert len(families) >= 10
    missing = [family for family in families if f"`{family}" not in page]
    assert not missing


def test_every_documented_metric_exists():
    text = Metrics("1", lambda: [("a", "closed", 0)]).render().decode()
    named = set(re.findall(r"`(outlast_[a-z_]+)", _page("metrics.md")))
    assert named
    assert not {word for word in named if f"# TYPE {word} " not in text}


def _gateway_codes() -> set[str]:
    codes: set[str] = set()
    for path in files("*.py", "src"):
        for word, call in calls(parse(path)):
            place = ERROR_MAKERS.get(word)
            given = [k.value for k in call.keywords if k.arg == "gateway_code"]
            if place is not None and len(call.args) > place:
                given.append(call.args[place])
            for value in given:
                codes |= {
                    node.value
                    for node in ast.walk(value)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                }
    return codes


def test_every_gateway_code_is_documented():
    codes = _gateway_codes()
    assert {"all_routes_failed", "model_not_found", "invalid_parameter"} <= codes
    page = _page("errors.md")
    assert not {code for code in codes if f"`{code}`" not in page}


def test_every_header_of_ours_is_documented():
    found: set[str] = set()
    for path in files("*.py", "src"):
        found |= set(re.findall(r"x-outlast-[a-z]+(?:-[a-z]+)*", path.read_text("utf-8").lower()))
    page = _page("headers.md")
    assert "x-outlast-failovers" in found
    assert not {header for header in found if f"`{header}`" not in page}


def test_every_command_is_documented():
    page = _page("cli.md")
    commands: set[str] = set()
    for path in files("*.py", "src/outlast/cli"):
        for word, call in calls(parse(path)):
            first = call.args[0] if call.args else None
            if word == "command" and isinstance(first, ast.Constant):
                commands.add(str(first.value))
        text = path.read_text(encoding="utf-8")
        commands |= set(re.findall(r"^app\.command\(\)\((\w+)\)$", text, re.MULTILINE))
    for function in (
        node
        for path in files("*.py", "src/outlast/cli")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef)
    ):
        for decorator in function.decorator_list:
            if re.fullmatch(r"\w+\.command\(\)", ast.unparse(decorator)):
                commands.add(function.name.strip("_").replace("_", "-"))
    assert {"serve", "check", "explain"} <= commands
    assert not {c for c in commands if not re.search(rf"`outlast {re.escape(c)}\b", page)}


def test_every_log_field_of_a_request_is_documented():
    page = _page("logs.md")
    assert not [f for f in RequestLine.__struct_fields__ if f"`{f}`" not in page]


def test_every_module_that_the_tour_names_exists():
    """A path in the tour is read from src/outlast, or from the repository's root."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w./-]+(?:\.py|\.md|/))`", text)
    assert paths
    assert not [p for p in paths if not (SOURCE / p).exists() and not (ROOT / p).exists()]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_link_leads_somewhere(page):
    for link in _links(page):
        target, _, fragment = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{link}: there is no such file"
        if fragment and path.suffix == ".md":
            assert fragment in _anchors(path), f"{link}: there is no such heading"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def test_every_page_can_be_reached_from_the_readme():
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = ((page.parent / link.partition("#")[0]).resolve() for link in _links(page))
        waiting += [t for t in targets if t.suffix == ".md" and t.exists()]
    assert not [name(p) for p in files("*.md", "docs") if p not in seen]


def test_the_changelog_has_an_unreleased_part():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text


def test_every_setting_is_documented():
    page = _page("settings.md")
    keys = re.findall(r"^\| `([^`]+)` \|", render_settings(), re.MULTILINE)
    assert len(keys) > 50
    assert not [key for key in keys if f"| `{key}` |" not in page]


def test_the_configuration_in_the_readme_loads_without_a_warning():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    loaded = parse_config(example.encode(), {"OPENAI_API_KEY": "k"}, folder=ROOT)
    assert "fast" in loaded.topology.pools
    assert not loaded.warnings


def test_the_picture_of_the_breaker_is_its_transition_table():
    text = (DOCS / "explanation" / "breaker.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^    (\w+) --> (\w+): (\w+)$", text, re.MULTILINE))
    table = {(s.value, after.value, e.value) for (s, e), after in TRANSITIONS.items()}
    assert drawn == table
