"""Where everything that happens to one request waits for its one coroutine.

Attempts, timers and the caller's connection put; the request's coroutine takes. Nothing here
blocks a putter: what is put is a word, the bytes stay with the attempt, whose buffer is bounded.
"""

import asyncio
from collections import deque
from enum import Enum

from msgspec import Struct

from outlast.model.fault import Fault


class Word(Enum):
    """What happened."""

    HEAD = "head"
    COMMITTED = "committed"
    FAILED = "failed"
    DATA = "data"
    ENDED = "ended"
    TIMER = "timer"
    GONE = "gone"


class Item(Struct, frozen=True):
    """One event. `source` is the number of the attempt it concerns (-1: none)."""

    word: Word
    source: int = -1
    fault: Fault | None = None


class Mailbox:
    """Many putters, one taker."""

    __slots__ = ("_items", "_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, item: Item) -> None:
        self._items.append(item)
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def take(self) -> Item:
        """The oldest item; waits while there is none."""
        while not self._items:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._items.popleft()
