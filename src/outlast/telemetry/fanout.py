"""Gives every fact to every consumer that takes its kind, in order.

Decides nothing and catches nothing: a consumer promises not to raise and not to wait, and the
tests of each hold it to that. Who takes what is settled once, at construction, for a fact that
nobody takes should cost one look-up.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from outlast.model.records import Record

Consuming: TypeAlias = Mapping[type[Record], Callable[[Any], None]]
"""Kind of fact -> who takes it."""


class Consumer(Protocol):
    """Something that takes some kinds of facts; it does not change its mind."""

    @property
    def consuming(self) -> Consuming: ...


class Fanout:
    """One Observer that stands for several consumers."""

    def __init__(self, *consumers: Consumer) -> None:
        takers: dict[type[Record], tuple[Callable[[Any], None], ...]] = {}
        for consumer in consumers:
            for kind, take in consumer.consuming.items():
                takers[kind] = (*takers.get(kind, ()), take)
        self._takers = takers

    def observe(self, record: Record) -> None:
        for take in self._takers.get(type(record), ()):
            take(record)
