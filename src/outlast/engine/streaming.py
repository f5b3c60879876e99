"""The relay of a committed stream: frames out as they come, and an honest end.

Owns what happens between commit and the last byte. Nothing is replaced here any more: a stream
that breaks, stalls or ends without its terminal event is reported as what it is.
"""

from outlast.engine.attempts import Attempt
from outlast.engine.mailbox import Item, Word
from outlast.engine.walk import Walk
from outlast.model.fault import Fault, FaultKind, Timer
from outlast.ports import Clock, Responder

WAIT_S_MIN = 0.001
"""A shorter write did not wait for its caller."""

_CALLER_GONE = Fault(FaultKind.CALLER_GONE)


async def relay(walk: Walk, attempt: Attempt, responder: Responder, clock: Clock) -> Fault | None:
    """Relay until the stream's end. None: complete; else why it is not.

    The idle clock runs only while the upstream is waited for: what a slow caller costs is added.
    It is only ever moved back, so the timer is armed anew when it has fired, not at every event.
    """
    idle = attempt.idle
    assert idle is not None
    take, number, now = walk.mailbox.take, attempt.number, clock.now
    walk.arm(idle.stalls_at)
    item = Item(Word.DATA, number)  # what was held back, with the event that commits
    while True:
        word = item.word
        if item.source == number:
            frames = attempt.take()
            if frames:
                before = now()
                await responder.write(frames)
                waited_s = now() - before
                if waited_s > WAIT_S_MIN:
                    idle.caller_was_slow(waited_s)
            if word is Word.ENDED:
                return None
            if word is Word.FAILED:
                return item.fault
        elif word is Word.GONE:
            return _CALLER_GONE
        elif word is Word.TIMER and not attempt.ended:  # else ENDED or FAILED is next
            if idle.stalls_at is not None and now() >= idle.stalls_at:
                return _stall(attempt)
            walk.arm(idle.stalls_at)
        item = await take()


def _stall(attempt: Attempt) -> Fault:
    idle_s = attempt.candidate.policy.timeouts.idle_stream_s
    return Fault(
        FaultKind.STREAM_BROKEN,
        status=attempt.status,
        timer=Timer.IDLE_STREAM,
        detail=f"no event for {idle_s:g} s (timeouts.idle_stream)",
    )
