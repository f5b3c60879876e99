"""The repository as its own tests see it: files, and what a parsed module holds."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "outlast"
_FOREIGN = {
    ".venv",
    ".git",
    ".pytest_cache",
    ".hypothesis",
    "dist",
    "site",
    "build",
    "node_modules",
}


def files(pattern: str, *folders: str) -> list[Path]:
    """Our files, sorted; everything below `folders`, or the whole repository."""
    starts = [ROOT / folder for folder in folders] or [ROOT]
    found = (path for start in starts for path in start.rglob(pattern))
    return sorted(p for p in found if _FOREIGN.isdisjoint(p.relative_to(ROOT).parts))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def calls(module: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """(the last word of what is called, the call)."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=word) | ast.Attribute(attr=word):
                    yield word, node
                case _:
                    pass  # a call of what a call returned has no name
