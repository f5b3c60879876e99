"""What a simulated provider does with one request: a pure list of steps.

Two hosts play scripts: `sim.upstream` in memory and `sim.sockets` over TCP. A script says only
what the wire shows and when; it knows neither the gateway's clock nor its words. Gaps are
relative: each `Wait` counts from the step before it.

Surprising cases: `Refuse` and `Blackhole` mean that no connection comes about, so a socket that
is already accepted cannot play them (`sim.sockets` lends ports that do). `Cut` before `Head` is a
reset without an answer, after it a body that breaks off. A script without `End`, `Cut`, `Refuse`,
`Blackhole` or `Hang` at its end falls silent like `Hang`: nothing ends by being forgotten.
"""

from typing import TypeAlias

from msgspec import Struct

ScriptHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names in lower case, in wire order."""


class Refuse(Struct, frozen=True):
    """Nobody listens: the connection is refused at once. Only ever a script's first step."""


class Blackhole(Struct, frozen=True):
    """The connection is never established. Only ever a script's first step."""


class Wait(Struct, frozen=True):
    """Nothing happens for `seconds` (>= 0)."""

    seconds: float


class Head(Struct, frozen=True):
    """The response head.

    Framing is the host's work: with no `content-length` among the headers the body is chunked.
    An `End` before `content-length` bytes went out closes the connection short of it.
    """

    status: int
    headers: ScriptHeaders = ()


class Body(Struct, frozen=True):
    """One piece of the body, never empty."""

    data: bytes


class End(Struct, frozen=True):
    """The body ends as its framing says. Before `Head`: the connection is closed unanswered."""


class Cut(Struct, frozen=True):
    """The connection is reset: before the head, or in the middle of the body."""


class Hang(Struct, frozen=True):
    """Silence for ever; the connection stays open until the other side closes it."""


Step: TypeAlias = Refuse | Blackhole | Wait | Head | Body | End | Cut | Hang
Script: TypeAlias = tuple[Step, ...]


def duration_s(script: Script) -> float:
    """Sum of the gaps: when the last step happens, counted from the request's arrival."""
    return sum(step.seconds for step in script if isinstance(step, Wait))


def content_length(headers: ScriptHeaders) -> int | None:
    """The body's announced size in bytes; None: chunked."""
    return next((int(value) for name, value in headers if name == b"content-length"), None)
