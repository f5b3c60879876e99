"""Plays a script step by step on a clock. Owns the timers of one script, nothing else.

What a step means is the host's affair: the player only calls `perform` at the right time, never
from inside `start`. Steps without a `Wait` between them are performed in one turn.
"""

from collections.abc import Callable

from outlast.ports import Clock, Handle
from outlast.sim.script import Script, Step, Wait


class Player:
    """One run through one script."""

    def __init__(self, script: Script, clock: Clock, perform: Callable[[Step], None]) -> None:
        self._script = script
        self._clock = clock
        self._perform = perform
        self._next = 0
        self._timer: Handle | None = None
        self._stopped = False

    def start(self) -> None:
        """Begin at the next turn of the loop."""
        self._timer = self._clock.call_at(self._clock.now(), self._turn)

    def stop(self) -> None:
        """Perform nothing more. Harmless after the end."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        self._timer = None
        while not self._stopped and self._next < len(self._script):
            step = self._script[self._next]
            self._next += 1
            if isinstance(step, Wait):
                self._timer = self._clock.call_at(self._clock.now() + step.seconds, self._turn)
                return
            self._perform(step)
