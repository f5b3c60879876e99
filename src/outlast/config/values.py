"""How single values are spelled: durations, sizes, numbers, words, lists of words.

Owns the grammar of a value and its bounds as its row of the table states them. Knows no path and
no layer. Secrets are `secret`'s.

Surprising cases: a bare number is a duration in seconds and a size in bytes; `1m30s` adds up;
sizes are powers of 1,024 with `KiB` and powers of 1,000 with `KB`. Infinity and NaN are nothing.
"""

import math
import re

from outlast.config.key import Key, Kind
from outlast.config.report import shown
from outlast.config.tree import Tree

DURATION_S_MAX = 366 * 86400.0

_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT_MS = {unit: round(seconds * 1000) for unit, seconds in _UNIT_S.items()}
_DURATION_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+\Z")
_UNIT_BYTES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|KB|MB|GB|KiB|MiB|GiB|)\Z")


def parse(key: Key, raw: Tree) -> object:
    """The value of a key that holds no secret.

    Durations come back as seconds, sizes as bytes, lists as tuples.

    Raises:
        ValueError: it is none; the message says what would be.
    """
    if raw is None:
        if key.null or (key.only is not None and None in key.only):
            return None
        raise ValueError(_expected(key, raw))
    value = _plain(key, raw)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if key.zero_off and value == 0:
            return None
        _check_bounds(key, value)
    return value


def _plain(key: Key, raw: Tree) -> object:
    match key.kind:
        case Kind.DURATION if key.inert and raw in key.words:
            return raw
        case Kind.DURATION:
            return parse_duration(raw)
        case Kind.SIZE:
            return parse_size(raw)
        case Kind.BOOL if isinstance(raw, bool):
            return raw
        case Kind.INT if isinstance(raw, int) and not isinstance(raw, bool):
            return raw
        case Kind.FLOAT if isinstance(raw, int | float) and not isinstance(raw, bool):
            if math.isfinite(raw):
                return float(raw)
        case Kind.STRING if isinstance(raw, str):
            return _text(raw)
        case Kind.WORD | Kind.EXHAUSTED if isinstance(raw, str | int) and str(raw) in key.words:
            return str(raw)
        case Kind.STRINGS | Kind.WORDS if isinstance(raw, list):
            return _strings(key, raw)
        case _:
            pass
    raise ValueError(_expected(key, raw))


def _text(raw: str) -> str:
    if not raw.strip():
        raise ValueError("must not be empty")
    if has_control(raw):
        raise ValueError("must not hold control characters")
    return raw


def _strings(key: Key, raw: list[Tree]) -> tuple[str, ...]:
    found: list[str] = []
    for item in raw:
        if not isinstance(item, str) or (key.words and item not in key.words):
            raise ValueError(_expected(key, item))
        found.append(_text(item))
    return tuple(dict.fromkeys(found))


def _expected(key: Key, raw: object) -> str:
    """What a value should have been, for a message."""
    match key.kind:
        case Kind.WORD | Kind.WORDS | Kind.EXHAUSTED:
            known = ", ".join(key.words)
            each = "must be a list out of" if key.kind is Kind.WORDS else "must be one of"
            return f"{each} {known}; got {shown(raw)}"
        case _:
            article = "an" if key.kind is Kind.INT else "a"
            optional = " or null" if key.null else ""
            return f"must be {article} {key.kind.value}{optional}, got {shown(raw)}"


def _check_bounds(key: Key, value: float) -> None:
    unit = {Kind.DURATION: " s", Kind.SIZE: " bytes"}.get(key.kind, "")
    got = f", got {value:g}{unit}"
    if key.above is not None and value <= key.above:
        hint = "; null turns it off" if key.null else ""
        raise ValueError(f"must be > {key.above:g}{got}{hint}")
    if key.at_least is not None and value < key.at_least:
        raise ValueError(f"must be >= {key.at_least:g}{got}")
    if key.at_most is not None and value > key.at_most:
        raise ValueError(f"must be <= {key.at_most:g}{got}")


def parse_duration(raw: Tree) -> float:
    """Seconds of `200ms`, `2s`, `1m30s`, or of a number of seconds.

    Raises:
        ValueError: it is none, is negative, or is longer than a year.
    """
    seconds: float | None = None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        seconds = float(raw)
    elif isinstance(raw, str) and _DURATION.match(raw):
        parts = _DURATION_PART.findall(raw)
        seconds = sum(float(number) * _UNIT_MS[unit] for number, unit in parts) / 1000
    if seconds is None or not math.isfinite(seconds):
        message = f"must be a duration such as 200ms, 2s or 1m30s, got {shown(raw)}"
        raise ValueError(message)
    if seconds < 0:
        raise ValueError(f"must be a duration that is not negative, got {shown(raw)}")
    if seconds > DURATION_S_MAX:
        raise ValueError(f"must be at most a year, got {shown(raw)}")
    return seconds


def parse_size(raw: Tree) -> int:
    """Bytes of `32MiB`, `1GB`, or of a number of bytes.

    Raises:
        ValueError: it is none.
    """
    if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0:
        return raw
    found = _SIZE.match(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError(f"must be a size such as 32MiB, got {shown(raw)}")
    return int(found[1]) * _UNIT_BYTES[found[2]]


def has_control(text: str) -> bool:
    """Does it hold a control character (C0, DEL, C1, or a line separator)?"""
    return any(char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029" for char in text)


def spell(key: Key, value: object) -> str:
    """A parsed value as one would write it; never called with a secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _spell_number(key, value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(str, value)) + "]"
    return "{}" if value == {} else str(value)


def _spell_number(key: Key, value: float) -> str:
    if key.kind is Kind.DURATION:
        return f"{value * 1000:g}ms" if 0 < value < 1 else f"{value:.12g}s"
    if key.kind is Kind.SIZE:
        for unit in ("GiB", "MiB", "KiB"):
            if value and value % _UNIT_BYTES[unit] == 0:
                return f"{value // _UNIT_BYTES[unit]}{unit}"
        return f"{value}B"
    return f"{value:.12g}"
