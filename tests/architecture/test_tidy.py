"""House rules about the text of the source itself."""

import ast
import re

import pytest
from tests.architecture.tree import SOURCE, calls, files, functions, name, parse

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 400
TEST_LINES_MAX = 800

FILES_OVER_THE_LIMIT: dict[str, int] = {}
"""A ratchet: a file listed here may be this long, and must get off the list when it is not."""

FUNCTIONS_OVER_THE_LIMIT: dict[str, int] = {}
"""Likewise, by `file::function`."""

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\bbreakpoint\(|\bpdb\b")
SPEAKERS = ("cli/", "sim/")
"""Where `print` may talk to people."""

DURATION = re.compile(
    r"(^|_)(timeout|delay|cooldown|interval|duration|deadline|ttl|latency|wait|grace)$"
)

SHAPES_OF_OTHERS = {"src/outlast/sim/virtual_loop.py": {"timeout"}}
"""Arguments whose name a foreign interface dictates (`selectors.BaseSelector.select`)."""

SOURCES = files("*.py", "src")
EVERY_FILE = files("*.py", "src", "tests", "bench")


@pytest.mark.parametrize("path", EVERY_FILE, ids=name)
def test_a_file_can_be_read_in_one_sitting(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    usual = TEST_LINES_MAX if name(path).startswith("tests/") else FILE_LINES_MAX
    allowed = FILES_OVER_THE_LIMIT.get(name(path), usual)
    assert lines <= allowed, f"{lines} lines, at most {allowed}: split it by noun"
    if name(path) in FILES_OVER_THE_LIMIT:
        assert lines > usual, f"{lines} lines: take it off the list"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_function_fits_on_a_screen(path):
    for function in functions(parse(path)):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        allowed = FUNCTIONS_OVER_THE_LIMIT.get(f"{name(path)}::{function.name}", FUNCTION_LINES_MAX)
        assert lines <= allowed, f"{function.name}: {lines} lines, at most {allowed}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_module_says_what_it_decides(path):
    header = ast.get_docstring(parse(path))
    assert header, "a module begins with what it decides or owns"


@pytest.mark.parametrize("path", EVERY_FILE, ids=name)
def test_a_module_is_named_after_something(path):
    assert EMPTY_NAMES.isdisjoint({*path.parts, path.stem}), "name it by the noun it holds"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_duration_carries_its_unit(path):
    """A number of seconds is called `..._s`; the config's own key names are strings, no names."""
    named = [
        (argument.arg, argument.annotation)
        for function in functions(parse(path))
        for argument in (*function.args.args, *function.args.kwonlyargs)
    ]
    named += [
        (node.target.id, node.annotation)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    bare = [
        word
        for word, annotation in named
        if DURATION.search(word)
        and word not in SHAPES_OF_OTHERS.get(name(path), ())
        and annotation is not None
        and re.fullmatch(r"(float|int)( \| None)?", ast.unparse(annotation))
    ]
    assert not bare, f"{bare}: end the name with its unit (_s, _ms)"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_was_left_lying_about(path):
    text = path.read_text(encoding="utf-8")
    assert not LEFTOVERS.search(text)
    if not path.relative_to(SOURCE).as_posix().startswith(SPEAKERS):
        assert "print" not in [
            word for word, call in calls(parse(path)) if isinstance(call.func, ast.Name)
        ]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_broad_except_says_why(path):
    """`except Exception` belongs to the outermost loops only, and each gives its reason."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for line in lines:
        if re.search(r"except\s*:|except\s+\(?(Base)?Exception\b", line):
            assert re.search(r"noqa: BLE001 - \w+", line), line.strip()


@pytest.mark.parametrize("path", files("*.py", "tests"), ids=name)
def test_a_test_does_not_pass_by_doing_nothing(path):
    for function in functions(parse(path)):
        if function.name.startswith("test_"):
            body = [n for n in function.body if not isinstance(n, ast.Expr | ast.Pass)]
            speaks = body or any(
                isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) for n in function.body
            )
            assert speaks, f"{function.name} is empty"
