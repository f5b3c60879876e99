"""Reads what a caller received as strictly as the strictest client would, and a bit more.

Says what an answer claims to be (whole, honestly broken, or cut) and whose text it holds. A
forgiving reader would hide what the checkers look for, so nothing is forgiven here: every event
must parse, carry one and the same id, and nothing may follow the terminal.
"""

from enum import Enum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from outlast.sim.answers import Identity, pieces, read_text


class Claim(Enum):
    """What an answer says about itself by the way it ends."""

    WHOLE = "whole"
    EMPTY = "empty"  # it ends well and says nothing
    BROKEN = "broken"  # it says that it is not whole
    CUT = "cut"  # it stops without a word


class Reading(Struct, frozen=True):
    """One answer as read. `problem` is what no honest answer contains; None: nothing."""

    claim: Claim
    text: str = ""
    answer_id: str | None = None
    usage_events: int = 0
    problem: str | None = None

    def whose(self) -> Identity | None:
        """Whose whole text this is; None: nobody's."""
        return read_text(self.text)

    def begins(self, who: Identity) -> bool:
        """Whether the text is the beginning of what `who` says."""
        return "".join(pieces(who)).startswith(self.text)


class _Message(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    delta: _Message = msgspec.field(default_factory=_Message)
    finish_reason: str | None = None


class _Answer(Struct):
    choices: list[_Choice]
    id: str | None = None
    usage: dict[str, object] | None = None
    error: dict[str, object] | None = None


def read_whole(body: bytes) -> Reading:
    """Read a whole answer."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        return Reading(Claim.CUT, problem="a whole answer that does not parse")
    if len(answer.choices) != 1 or answer.error is not None:
        return Reading(Claim.CUT, problem="a whole answer without exactly one choice")
    text = answer.choices[0].message.content or ""
    return Reading(Claim.WHOLE, text, answer.id)


def read_stream(body: bytes) -> Reading:
    """Read a stream as far as it came. A half event at its end is a problem: framing is broken."""
    *events, rest = body.split(b"\n\n")
    if rest:
        return Reading(Claim.CUT, problem="half an event at the end")
    text, usage_events = "", 0
    ids: set[str | None] = set()
    finish: str | None = None
    for position, event in enumerate(events):
        if event == b"data: [DONE]":
            if position != len(events) - 1:
                return Reading(Claim.CUT, text, problem="something follows the terminal")
            return _terminal(finish, Reading(Claim.WHOLE, text, _only(ids), usage_events))
        try:
            chunk = msgspec.json.decode(event.removeprefix(b"data: "), type=_Answer)
        except msgspec.MsgspecError:
            return Reading(Claim.CUT, text, problem="an event that does not parse")
        ids.add(chunk.id)
        if len(ids) != 1:
            return Reading(Claim.CUT, text, problem="chunks of two answers")
        usage_events += not chunk.choices and chunk.usage is not None
        for choice in chunk.choices:
            if finish is not None:
                return Reading(Claim.CUT, text, problem="a choice after the finish reason")
            text += choice.delta.content or ""
            finish = choice.finish_reason
    return Reading(Claim.CUT, text, _only(ids), usage_events)


def _terminal(finish: str | None, reading: Reading) -> Reading:
    """What the terminal event claims, given the finish reason before it."""
    match finish:
        case "stop":
            return reading
        case "error":
            return replace(reading, claim=Claim.BROKEN)
        case None if not reading.text:
            return replace(reading, claim=Claim.EMPTY)
        case _:
            return replace(reading, problem=f"finish reason {finish} before the terminal")


def _only(ids: set[str | None]) -> str | None:
    return next(iter(ids), None)
