"""The one redactor in front of every sink: what may never be read in a log.

It removes the secrets that the process knows (handed in at construction), everything that stands
behind an Authorization header, what looks like a vendor's key, the user part of a URL and query
strings. It decides nothing about which facts are logged.

Surprising cases: a known secret shorter than `SECRET_CHARS_MIN` is no secret to it, because
replacing every "x" in a log hides more than it saves; text is cut at `TEXT_CHARS_MAX`, so that a
provider's page of HTML never becomes a log line.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

SECRET_CHARS_MIN = 4
TEXT_CHARS_MAX = 500
REDACTED = "[redacted]"

_NAMES_MAX = 1024
"""Cleaned names that are remembered: models repeat from request to request."""

_DEPTH_MAX = 6
"""Values nested deeper than this are dropped: nothing that we log is."""

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"(?i)\b((?:proxy-)?authorization|x-api-key|api[-_]key|x-goog-api-key)"
            r"(\W{1,4})(?:(?:bearer|basic)\s+)?[^\s\"',;)\]}]+"
        ),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{4,}"), rf"\1 {REDACTED}"),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|tgp|fw|hf|r8)[-_][\w-]{6,}"), REDACTED),
    (re.compile(r"\bAIza[\w-]{16,}"), REDACTED),
    (re.compile(r"(?<=://)[^/\s@\"'?#]+@"), f"{REDACTED}@"),
    (re.compile(r"\?[^\s\"'<>=?]+=[^\s\"'<>]*"), f"?{REDACTED}"),
)

_SECRET_NAMES = frozenset(
    {"authorization", "proxy_authorization", "x_api_key", "api_key", "secret", "password", "token"}
)


class Redactor:
    """Cleans text and structured values. Never raises."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= SECRET_CHARS_MIN}
        known |= {quote(secret, safe="") for secret in known}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if known else None
        self._names: dict[str, str] = {}

    def __repr__(self) -> str:
        return "Redactor()"

    def text(self, text: str) -> str:
        """`text` without secrets, at most `TEXT_CHARS_MAX` characters, always valid UTF-8.

        Known secrets are looked for in the whole text before it is cut, so a cut never leaves the
        first half of one.
        """
        if not text:
            return text
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        cut = len(text) > TEXT_CHARS_MAX
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        if cut:
            text = f"{text[:TEXT_CHARS_MAX]}…"
        return text.encode("utf-8", "backslashreplace").decode()

    def name(self, name: str) -> str:
        """As `text`, for short text that comes again and again."""
        clean = self._names.get(name)
        if clean is None:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            clean = self._names[name] = self.text(name)
        return clean

    def value(self, value: object, depth: int = 0) -> object:
        """As `text`, for what a structured line holds."""
        match value:
            case bool() | int() | float() | None:
                return value
            case str():
                return self.text(value)
            case bytes():
                return self.text(value.decode("utf-8", "replace"))
            case Mapping() if depth < _DEPTH_MAX:
                return self.fields(value, depth + 1)
            case list() | tuple() | set() | frozenset() if depth < _DEPTH_MAX:
                return [self.value(item, depth + 1) for item in value]
            case _:
                return self.text(str(value)) if depth < _DEPTH_MAX else REDACTED

    def fields(self, fields: Mapping[str, object], depth: int = 0) -> dict[str, object]:
        """A line's fields; what is named like a secret loses its value whole."""
        return {
            self.text(str(name)): (
                REDACTED
                if str(name).lower().replace("-", "_") in _SECRET_NAMES and value is not None
                else self.value(value, depth)
            )
            for name, value in fields.items()
        }
