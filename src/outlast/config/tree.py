"""From bytes to plain values: YAML 1.2's core schema, bounded, with duplicates refused.

Owns what YAML means here: `on`, `off`, `yes` and `no` are strings, only `0o` starts an octal
number, keys are strings as written (`503:` is `"503"`), and a key twice in one mapping is a
problem. Does not know any setting.

Surprising cases: PyYAML's own constructor is not used, because its YAML 1.1 booleans would turn
the key `on:` into `True`. Aliases are expanded, and the expansion is counted: a file that would
grow beyond `NODES_MAX` is refused. Merge keys (`<<`) are not part of YAML 1.2.

Source: YAML 1.2.2, section 10.3.2 (core schema).
"""

import re
from typing import TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from outlast.config.report import Report, join

Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"

FILE_BYTES_MAX = 1024 * 1024
DEPTH_MAX = 32
NODES_MAX = 100_000
"""Values after aliases are expanded. 2,000 deployments with ten keys each are 40,000."""
DIGITS_MAX = 18
"""Longer integers are no setting, and would not fit 64 bits."""

_CORE = "tag:yaml.org,2002:"
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z"
    r"|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)


class _TooDeep(yaml.MarkedYAMLError):
    """Stops the composer before Python's own stack does."""


class _Loader(yaml.SafeLoader):
    """SafeLoader up to the node graph, with the core schema's tags and a bound on depth."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            mark = self.get_mark()
            raise _TooDeep(None, None, f"nested deeper than {DEPTH_MAX} levels", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: type[Node], value: str | None, implicit: object) -> str:
        if kind is MappingNode:
            return _CORE + "map"
        if kind is SequenceNode:
            return _CORE + "seq"
        plain = isinstance(implicit, tuple) and bool(implicit[0])
        return _CORE + (_core_type(value or "") if plain else "str")


def _core_type(text: str) -> str:
    for name, pattern in (("null", _NULL), ("bool", _BOOL), ("int", _INT), ("float", _FLOAT)):
        if pattern.match(text):
            return name
    return "str"


def read_tree(data: bytes, report: Report) -> dict[str, Tree]:
    """The top-level mapping of a file; an empty file is an empty mapping.

    Raises:
        ConfigError: it cannot be read as a mapping at all, or keys occur twice in it.
    """
    root = _compose(data, report)
    tree = _Reading(report).value(root, "", 0) if root is not None else {}
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        report.problem("", "the file must be a mapping of settings, such as `server:`")
        tree = {}
    report.check()
    return tree


def _compose(data: bytes, report: Report) -> Node | None:
    if len(data) > FILE_BYTES_MAX:
        report.problem("", f"the file is larger than {FILE_BYTES_MAX // 1024} KiB")
        report.check()
    node: Node | None = None
    try:
        loader = _Loader(data.decode("utf-8-sig"))
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except UnicodeDecodeError as error:
        report.problem("", f"the file is not UTF-8 (byte {error.start})")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        report.problem("", f"{where}not YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        report.problem(
            "", f"not YAML: a character that must be escaped (position {error.position})"
        )
    except (yaml.YAMLError, ValueError, OverflowError):
        # An escape such as "\UFFFFFFFF" is an OverflowError inside PyYAML.
        report.problem("", "not YAML: an escape that stands for no character")
    report.check()
    return node


class _Reading:
    """Turns nodes into values and counts them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._nodes = 0

    def value(self, node: Node, path: str, depth: int) -> Tree:
        """A node's value, aliases expanded."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            self._report.problem("", f"aliases expand to more than {NODES_MAX} values")
            self._report.check()
        if depth > DEPTH_MAX:
            self._report.problem(path[:80], "an alias contains itself")
            self._report.check()
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [
                self.value(item, f"{path}[{index}]", depth + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: str, depth: int) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._report.problem(path, f"line {line}: a key must be a plain word")
                continue
            key = key_node.value
            here = join(path, key)
            if key in lines:
                message = f"the key stands twice, in lines {lines[key]} and {line}; keep one"
                self._report.problem(here, message)
            elif key == "<<":
                message = "merge keys are not part of YAML 1.2; write the keys out"
                self._report.problem(here, message)
            else:
                lines[key] = line
                found[key] = self.value(value_node, here, depth + 1)
        return found

    def _scalar(self, node: Node, path: str) -> Tree:
        text = str(node.value)
        match node.tag.removeprefix(_CORE):
            case "str":
                return self._string(text, path)
            case "null" if _NULL.match(text):
                return None
            case "bool" if _BOOL.match(text):
                return text.lower() == "true"
            case "int" if _INT.match(text):
                return self._integer(text, path)
            case "float" if _FLOAT.match(text):
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case "float" if _INT.match(text):
                return float(self._integer(text, path))
            case _:
                line = node.start_mark.line + 1
                self._report.problem(path, f"line {line}: the tag does not fit the value; drop it")
                return None

    def _string(self, text: str, path: str) -> str:
        if any("\ud800" <= char <= "\udfff" for char in text):
            self._report.problem(path, "holds half of a surrogate pair; write the character itself")
            return ""
        return text

    def _integer(self, text: str, path: str) -> int:
        if len(text.lstrip("+-0ox")) > DIGITS_MAX:
            self._report.problem(path, f"an integer of more than {DIGITS_MAX} digits")
            return 0
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base)
