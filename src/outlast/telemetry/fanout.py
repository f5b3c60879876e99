"""Gives every fact to every consumer, in order.

Decides nothing and catches nothing: an Observer promises not to raise and not to wait, and the
tests of each consumer hold it to that.
"""

from outlast.model.records import Record
from outlast.ports import Observer


class Fanout:
    """One Observer that stands for several."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def observe(self, record: Record) -> None:
        for observer in self._observers:
            observer.observe(record)
