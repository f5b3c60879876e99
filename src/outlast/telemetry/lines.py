"""How a log line is spelled: JSON for machines, short text for people.

Owns the canonical line of a request (`RequestLine`) and both renderings. The canonical line is
built by hand, without structlog: every request pays for it.

Surprising case: a text line never holds a raw control character; anything that is not plain
printable text is quoted and escaped, so that a model's name cannot forge a second line.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from msgspec import Struct

from outlast.model.records import AttemptEnded, RequestEnded
from outlast.telemetry.redactor import Redactor

_GENERATED_ID_CHARS = 32
"""Ids of our own making are this many letters and digits; only others may hide something."""

_LEVELS = {"exhausted": "warning", "stream_broken": "warning", "error": "error"}


class RequestLine(Struct, frozen=True, omit_defaults=True):
    """The one line that a request leaves. Times are milliseconds.

    `attempts` reads `a:timeout@4012ms b:ok`, `skipped` reads `c:resting`. What is None or empty
    is left out.
    """

    timestamp: str
    level: str
    event: str
    request_id: str
    pool: str
    model: str
    dialect: str
    stream: bool
    outcome: str
    status: int
    duration_ms: float
    attempts: str = ""
    failovers: int = 0
    saved: bool = False
    code: str | None = None
    ttft_ms: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    skipped: str = ""
    detail: str = ""


def timestamp_text(wall: float) -> str:
    """ISO 8601 in UTC with milliseconds."""
    millis = int(wall * 1000)
    return f"{_second_text(millis // 1000)}.{millis % 1000:03d}Z"


@lru_cache(maxsize=2)
def _second_text(second: int) -> str:
    """Spelling a date costs more than the rest of a line, and a second holds many lines."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def request_line(record: RequestEnded, wall: float, redactor: Redactor) -> RequestLine:
    """The canonical line of a request; free text goes through the redactor, words do not."""
    usage = record.usage
    first = record.first_token_s
    details = " ".join([f"{a.deployment}: {a.detail}" for a in record.attempts if a.detail])
    own_id = len(record.request_id) == _GENERATED_ID_CHARS and record.request_id.isalnum()
    return RequestLine(
        timestamp=timestamp_text(wall),
        level=_LEVELS.get(record.outcome, "info"),
        event="request",
        request_id=record.request_id if own_id else redactor.text(record.request_id),
        pool=record.pool,
        model=redactor.name(record.model),
        dialect=record.dialect,
        stream=record.stream,
        outcome=record.outcome,
        status=record.status,
        duration_ms=round(record.duration_s * 1000, 1),
        attempts=" ".join([_attempt_text(attempt) for attempt in record.attempts]),
        failovers=record.failovers,
        saved=record.saved,
        code=record.code,
        ttft_ms=None if first is None else round(first * 1000, 1),
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        cached_tokens=None if usage is None or not usage.cached_tokens else usage.cached_tokens,
        reasoning_tokens=(
            None if usage is None or not usage.reasoning_tokens else usage.reasoning_tokens
        ),
        skipped=" ".join([f"{s.deployment}:{s.reason.value}" for s in record.skipped]),
        detail=redactor.text(details),
    )


def _attempt_text(attempt: AttemptEnded) -> str:
    if attempt.kind is None:
        return f"{attempt.deployment}:ok"
    return f"{attempt.deployment}:{attempt.kind.value}@{attempt.duration_s * 1000:.0f}ms"


def json_line(line: object) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(line) + b"\n"


_DIM, _RESET = "\x1b[2m", "\x1b[0m"
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "info": "\x1b[32m"}
_QUOTED_ABOVE = frozenset(' "=\\')


def text_line(fields: Mapping[str, object], *, colours: bool) -> bytes:
    """One line for a terminal: time, level, event, then `name=value` for what is set."""
    rest = dict(fields)
    stamp = str(rest.pop("timestamp", ""))
    clock = stamp[11:19] or stamp
    level = str(rest.pop("level", "info"))
    event = _plain(rest.pop("event", ""), spaces=True)
    pairs = " ".join(f"{name}={_plain(value)}" for name, value in rest.items() if value is not None)
    head = f"{clock} {level:<7} {event}"
    if colours:
        head = f"{_DIM}{clock}{_RESET} {_COLOURS.get(level, '')}{level:<7}{_RESET} {event}"
    return f"{head} {pairs}".rstrip().encode("utf-8", "backslashreplace") + b"\n"


def _plain(value: object, *, spaces: bool = False) -> str:
    """A value as one word, or (with `spaces`) as plain text; quoted where it is not plain."""
    if not isinstance(value, str):
        value = json.dumps(value, default=str) if isinstance(value, list | dict) else str(value)
    if value.isprintable() and (spaces or not (_QUOTED_ABOVE & set(value))) and value:
        return value
    return json.dumps(value)
