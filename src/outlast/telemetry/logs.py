"""The log: one line per request, one per change of state, nothing per event of a stream.

`Log` is the one way to a line. State changes, start-up and crashes go through structlog
(`Log.state`); the canonical request line does not, because every request pays for it. Both pass
the same redactor and end in the same writer, so they stay in order.

Nothing here is process-wide: structlog's global configuration is never touched.

Surprising case: `exc_info` is logged as the types and places of an exception, without its
message, because a message may quote what a caller sent.
"""

import sys
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from outlast.model.clock import WallTime
from outlast.model.records import (
    BreakerMoved,
    FailoverTriggered,
    Noted,
    Record,
    RequestEnded,
)
from outlast.telemetry.fanout import Consuming
from outlast.telemetry.lines import json_line, request_line, text_line, timestamp_text
from outlast.telemetry.redactor import Redactor
from outlast.telemetry.writer import LineWriter

_INFO, _DEBUG = 20, 10

_Fields = MutableMapping[str, Any]


def wants_text(log_format: str, *, terminal: bool) -> bool:
    """Whether lines are text: `text` and `json` say so, `auto` looks at the stream."""
    return log_format == "text" or (log_format == "auto" and terminal)


def wants_colours(env: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a text line is coloured: on a terminal, unless `NO_COLOR` is set (no-color.org)."""
    return terminal and not env.get("NO_COLOR")


class _StructlogEnd:
    """What structlog writes to at the end of its chain."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write

    def msg(self, line: bytes) -> None:
        self._write(line)

    debug = info = warning = error = critical = exception = msg


class Log:
    """An Observer that writes lines. `state` is the logger for everything but requests."""

    def __init__(
        self,
        writer: LineWriter,
        redactor: Redactor,
        wall: Callable[[], WallTime],
        *,
        text: bool,
        colours: bool = False,
        debug: bool = False,
    ) -> None:
        self._writer = writer
        self._redactor = redactor
        self._wall = wall
        self._text = text
        self._colours = colours
        self.state: FilteringBoundLogger = structlog.wrap_logger(
            _StructlogEnd(writer.write),
            processors=[
                structlog.processors.add_log_level,
                self._stamp,
                _describe_exception,
                self._redact,
                self._render,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(_DEBUG if debug else _INFO),
            context_class=dict,
            cache_logger_on_first_use=False,
        )
        # Attempts have no line of their own: they are part of their request's.
        self.consuming: Consuming = {
            RequestEnded: self._request,
            FailoverTriggered: self._failover,
            BreakerMoved: self._transition,
            **({Noted: self._noted} if debug else {}),
        }

    def observe(self, record: Record) -> None:
        """Take a fact. Never raises, never waits."""
        tell = self.consuming.get(type(record))
        if tell is not None:
            tell(record)

    def _failover(self, record: FailoverTriggered) -> None:
        self.state.warning(
            "failover_triggered",
            request_id=record.request_id,
            pool=record.pool,
            attempt=record.attempt,
            provider=record.provider,
            deployment=record.deployment,
            status=record.status,
            reason=record.reason.value,
        )

    def _transition(self, record: BreakerMoved) -> None:
        moved = self.state.warning if record.after == "open" else self.state.info
        moved(
            "breaker_transition",
            provider=record.provider,
            deployment=record.deployment,
            consecutive_failures=record.consecutive_failures,
            **{"from": record.before, "to": record.after},
        )

    def _noted(self, record: Noted) -> None:
        fields = {n: v for n, v in record.fields.items() if n not in _RESERVED}
        self.state.debug(record.event, request_id=record.request_id, **fields)

    def _request(self, record: RequestEnded) -> None:
        self._writer.write_later(partial(self._spell, record, self._wall()))

    def _spell(self, record: RequestEnded, wall: WallTime) -> bytes:
        line = request_line(record, wall, self._redactor)
        if self._text:
            return text_line(msgspec.to_builtins(line), colours=self._colours)
        return json_line(line)

    def _stamp(self, _logger: object, _method: str, fields: _Fields) -> _Fields:
        return {"timestamp": timestamp_text(self._wall()), **fields}

    def _redact(self, _logger: object, _method: str, fields: _Fields) -> _Fields:
        return self._redactor.fields(fields)

    def _render(self, _logger: object, _method: str, fields: _Fields) -> bytes:
        event = fields.pop("event", "")
        level = fields.pop("level", "info")
        stamp = fields.pop("timestamp", "")
        line = {"timestamp": stamp, "level": level, "event": event, **fields}
        return text_line(line, colours=self._colours) if self._text else json_line(line)


def _describe_exception(_logger: object, _method: str, fields: _Fields) -> _Fields:
    """Replace `exc_info` (an exception, or True inside an `except`) by what is safe to say."""
    error = fields.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
        cause = error.__cause__ or error.__context__
        fields["exception"] = type(error).__name__
        fields["cause"] = None if cause is None else type(cause).__name__
        fields["frames"] = [f"{f.filename}:{f.lineno} {f.name}" for f in frames]
    return fields


_FRAMES_MAX = 12
"""Innermost frames of a traceback that are logged."""

_RESERVED = frozenset({"event", "level", "timestamp", "request_id"})
"""Names that a fact's own fields may not take."""
