"""What the table of settings says about one key, and what a section of the file may hold.

Owns the words of the table (`Kind`, `Scope`, `Key`, `Section`), no keys. Paths are relative to
the section in which a key stands: `timeouts.connect`. A `GROUP` is a mapping of further keys; it
has a row of its own only where it may be `null` or where none of it is built.

Surprising case: `only` lists the values that this version honours out of those that a key will
have. A key that is not built yet is one whose only honoured values mean "off".
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct


class Kind(Enum):
    """How a value is spelled."""

    DURATION = "duration"
    SIZE = "size"
    INT = "integer"
    FLOAT = "number"
    BOOL = "boolean"
    WORD = "word"
    STRING = "string"
    SECRET = "secret"  # noqa: S105 - a type's name
    STRINGS = "list of strings"
    WORDS = "list of words"
    SECRETS = "list of secrets"
    SECRET_MAP = "mapping of name to secret"  # noqa: S105 - a type's name
    GROUP = "mapping"
    EXHAUSTED = "word or mapping"


class Scope(Enum):
    """What a value may depend on. `REQUEST` and `CANDIDATE` keys are the policy keys."""

    REQUEST = "request"
    CANDIDATE = "candidate"
    FILE = "file"


class Key(Struct, frozen=True):
    """One row of the table.

    default: as one would write it in the file. None: no value, or off.
    built: False: nothing of it works yet and `only` holds the values that mean off.
    words: every word that the key will know (`WORD`, `WORDS`).
    only: parsed values that this version honours; None: all of them.
    null: `null` is a value (off, or no limit). zero_off: so is `0`, and it means the same.
    above, at_least, at_most: bounds of a number; seconds for durations, bytes for sizes.
    inert: checked and kept, without effect while the feature that it tunes is off.
    """

    path: str
    kind: Kind
    default: object
    scope: Scope
    meaning: str
    built: bool = True
    words: tuple[str, ...] = ()
    only: tuple[object, ...] | None = None
    null: bool = False
    zero_off: bool = False
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    inert: bool = False


def inert(
    path: str,
    kind: Kind,
    default: object,
    meaning: str,
    *,
    scope: Scope,
    above: float | None = None,
    at_least: float | None = None,
) -> Key:
    """A key that tunes something that is off, and is checked all the same."""
    return Key(
        path,
        kind,
        default,
        scope,
        meaning,
        built=False,
        inert=True,
        null=True,
        above=above,
        at_least=at_least,
    )


class Section:
    """The keys that may stand in one kind of place, looked up level by level.

    `title` names the place in messages. `elsewhere` holds policy keys that may not stand here.
    """

    def __init__(self, title: str, keys: Sequence[Key], elsewhere: Sequence[Key] = ()) -> None:
        self.title = title
        self.keys: Mapping[str, Key] = {key.path: key for key in keys}
        self.elsewhere = frozenset(_with_groups(elsewhere)) - _with_groups(keys)
        self._names: dict[str, list[str]] = {}
        for path in _with_groups(keys):
            parent, _, name = path.rpartition(".")
            self._names.setdefault(parent, []).append(name)

    def names(self, group: str) -> list[str]:
        """Names that may stand directly in a group (`""`: in the section), sorted."""
        return sorted(self._names.get(group, []))

    def knows(self, path: str) -> bool:
        """Is it a key or a group of this section?"""
        return path in self.keys or path in self._names

    def holds_elsewhere(self, path: str) -> bool:
        """Is it a group that may stand in other sections only?"""
        return path in self.elsewhere and any(p.startswith(path + ".") for p in self.elsewhere)


def _with_groups(keys: Sequence[Key]) -> set[str]:
    found: set[str] = set()
    for key in keys:
        parts = key.path.split(".")
        found.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return found
