"""YAML 1.2 core, bounded."""

import pytest

from outlast.config import tree
from outlast.config.report import Report
from outlast.config.tree import read_tree
from outlast.errors import ConfigError


def read(text):
    return read_tree(text.encode() if isinstance(text, str) else text, Report())


def problems(text):
    with pytest.raises(ConfigError) as caught:
        read(text)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "word", ["on", "off", "yes", "no", "On", "Y", "1_000", "0b1", "1:30", "2026-01-01", "0x"]
)
def test_what_yaml_1_1_turns_into_something_else_stays_a_string(word):  # fmt: skip
    assert read(f"k: {word}\n{word}: 1") == {"k": word, word: 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("'true'", "true"),
        ("!!str 3", "3"),
    ],
)
def test_scalars_follow_the_core_schema(text, value):
    found = read(f"k: {text}")["k"]
    assert found == value
    assert type(found) is type(value)


def test_a_key_twice_is_a_problem_with_both_lines():
    assert problems("a: 1\nb: {c: 1,\n  c: 2}\na: 3") == [
        "b.c: the key stands twice, in lines 2 and 3; keep one",
        "a: the key stands twice, in lines 1 and 4; keep one",
    ]


def test_a_syntax_error_names_its_line():
    assert problems("a: 1\nb: [1,\nc: }")[0].startswith("line 3, column 4: not YAML:")


def test_deep_nesting_is_refused_before_it_costs_the_stack():
    assert "nested deeper than 32" in problems("a: " + "[" * 5000)[0]


def test_an_alias_bomb_is_refused():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert problems("\n".join(lines)) == [f"aliases expand to more than {tree.NODES_MAX} values"]


def test_an_alias_inside_itself_is_refused():
    assert "contains itself" in problems("a: &a [*a]")[0]


def test_a_large_file_is_refused():
    assert problems("#" * (tree.FILE_BYTES_MAX + 1)) == ["the file is larger than 1024 KiB"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe",
        b"a: \x00",
        b'a: "\\UFFFFFFFF"',
        b'a: "\\ud800"',
        b"a: !!python/object:os.system x",
        b"a: !!int x",
        b"a: 99999999999999999999999",
        b"? [a]\n: 1",
        b"a: *nowhere",
        b"--- a\n--- b",
        b"- a",
    ],
)
def test_what_is_no_plain_mapping_is_a_config_error(data):
    assert problems(data)


def test_an_empty_file_is_an_empty_mapping():
    assert read("") == read("# nothing\n") == read("---\n") == {}
