"""The relay of a committed stream: frames out as they come, and an honest end.

Owns what happens between commit and the last byte. Nothing is replaced here any more: a stream
that breaks, stalls or ends without its terminal event is reported as what it is.
"""

from outlast.engine.attempts import Attempt
from outlast.engine.mailbox import Word
from outlast.engine.walk import Walk
from outlast.model.fault import Fault, FaultKind, Timer
from outlast.ports import Clock, Responder

_CALLER_GONE = Fault(FaultKind.CALLER_GONE)


async def relay(walk: Walk, attempt: Attempt, responder: Responder, clock: Clock) -> Fault | None:
    """Relay until the stream's end. None: complete; else why it is not.

    The idle clock runs only while the upstream is waited for: what a slow caller costs is added.
    """
    idle = attempt.idle
    assert idle is not None
    mailbox = walk.mailbox
    await _write(attempt, responder, clock)  # what was held back, with the event that commits
    while True:
        walk.arm(idle.stalls_at)
        item = await mailbox.take()
        if item.source not in {attempt.number, -1}:
            continue  # a late word of an attempt that failed before
        match item.word:
            case Word.DATA | Word.ENDED | Word.FAILED:
                await _write(attempt, responder, clock)
                if item.word is Word.FAILED:
                    return item.fault
                if item.word is Word.ENDED:
                    return None
            case Word.TIMER:
                if attempt.ended:
                    continue  # all of it came while the caller was slow; ENDED or FAILED is next
                if idle.stalls_at is not None and clock.now() >= idle.stalls_at:
                    idle_s = attempt.candidate.policy.timeouts.idle_stream_s
                    return Fault(
                        FaultKind.STREAM_BROKEN,
                        status=attempt.status,
                        timer=Timer.IDLE_STREAM,
                        detail=f"no event for {idle_s:g} s (timeouts.idle_stream)",
                    )
            case Word.GONE:
                return _CALLER_GONE
            case Word.HEAD | Word.COMMITTED:
                pass  # both were before


async def _write(attempt: Attempt, responder: Responder, clock: Clock) -> None:
    """Hand on what has come. What that waits for the caller is added to the idle clock."""
    frames = attempt.take()
    if frames:
        before = clock.now()
        await responder.write(frames)
        assert attempt.idle is not None
        attempt.idle.caller_was_slow(clock.now() - before)
