"""Builds the engine from ports and a topology. The one place; `runtime` and `sim` both call it."""

import asyncio
from collections.abc import Callable, Mapping

from outlast.engine.health import HealthBook
from outlast.engine.pipeline import Engine
from outlast.engine.snapshot import build_snapshot
from outlast.engine.walk import World
from outlast.model.topology import Topology
from outlast.ports import Clock, Observer, Upstream
from outlast.protocols.dialect import Dialect


def build_engine(
    topology: Topology,
    dialects: Mapping[str, Dialect],
    *,
    upstream: Upstream,
    clock: Clock,
    observer: Observer,
    chance: Callable[[], float],
    debug: bool = False,
) -> Engine:
    """An engine for one topology, made inside its running loop.

    `chance` returns uniform numbers in [0, 1). `debug`: tell observers how plans come about.
    """
    world = World(
        snapshot=build_snapshot(topology, dialects),
        health=HealthBook(topology, chance, observer.observe),
        upstream=upstream,
        clock=clock,
        observer=observer,
        chance=chance,
        loop=asyncio.get_running_loop(),  # once: asking costs a system call each time
    )
    return Engine(world, dialects, debug=debug)
