"""Plays a world with the real engine in virtual time and keeps what happened.

Owns the play: providers that follow their spells, callers that come and leave, and the notes that
the checkers read. Nothing is judged here.
"""

import asyncio
import hashlib
import json
import random
import sys
from collections.abc import Mapping

from msgspec import Struct

from outlast.engine.assembly import build_engine
from outlast.engine.call import Call
from outlast.engine.pipeline import Engine
from outlast.errors import GatewayError
from outlast.model.clock import Instant
from outlast.model.ids import RequestId
from outlast.model.records import Noted, Record
from outlast.ports import Clock
from outlast.protocols.table import DIALECTS
from outlast.sim.calamities import CALAMITIES
from outlast.sim.callers import Caller
from outlast.sim.provider import Behaviour, SimRequest, healthy
from outlast.sim.script import Script
from outlast.sim.upstream import SimUpstream
from outlast.sim.virtual_loop import VirtualLoop, run, running_clock
from outlast.sim.world import Cast, Visit, World, build_world

PLAY_LIMIT_S = 20_000.0
"""No world lasts so long: what is still running then never ends."""

SETTLE_S = 5.0
"""After the last request: time for connections to end their bodies."""


class Story(Struct):
    """What happened in a world. `records` in order, with the instant of each.

    `suffered` says what each call of each provider met (None: it was well). The rest is what was
    left when all was over: every number should be 0, every state `closed`.
    """

    world: World
    callers: list[Caller]
    records: list[tuple[Instant, Record]]
    suffered: dict[tuple[str, int], str | None]
    open_exchanges: int = 0
    timers: int = 0
    states: dict[str, tuple[str, int]] = {}

    def digest(self) -> str:
        """One number for all that happened; equal for equal seeds."""
        told = hashlib.sha256()
        for record in self.records:
            told.update(repr(record).encode())
        for caller in self.callers:
            answer = (caller.status, caller.answered_at, caller.over_at, caller.body)
            told.update(repr(answer).encode())
        return told.hexdigest()


class _Notebook:
    """`ports.Observer` that keeps every record."""

    def __init__(self, clock: Clock, records: list[tuple[Instant, Record]]) -> None:
        self._clock = clock
        self._records = records

    def observe(self, record: Record) -> None:
        self._records.append((self._clock.now(), record))


def play(world: World) -> Story:
    """Play a world to its end.

    Raises:
        DeadlockError: somebody waits for what can never come.
        TimeoutError: something never ends.
    """
    return run(_play(world))


async def _play(world: World) -> Story:
    clock = running_clock()
    story = Story(world, [Caller(visit, clock) for visit in world.visits], [], {})
    behaviours = {c.voice.name: _behaviour(c, clock, story.suffered) for c in world.casts}
    upstream = SimUpstream(clock, behaviours, seed=world.seed)
    engine = build_engine(
        world.topology,
        DIALECTS,
        upstream=upstream,
        clock=clock,
        observer=_Notebook(clock, story.records),
        chance=random.Random(f"engine {world.seed}").random,  # noqa: S311 - a simulation's chance
    )
    async with asyncio.timeout(PLAY_LIMIT_S), asyncio.TaskGroup() as group:
        for caller in story.callers:
            group.create_task(_call(engine, caller, clock))
    await _until(clock, clock.now() + SETTLE_S)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    story.open_exchanges = upstream.open_exchanges
    story.timers = loop.timers()
    story.states = {name: (state, held) for name, state, held in engine.world.health.states()}
    await upstream.aclose()
    return story


async def _until(clock: Clock, when: Instant) -> None:
    reached = asyncio.Event()
    clock.call_at(when, reached.set)
    await reached.wait()


async def _call(engine: Engine, caller: Caller, clock: Clock) -> None:
    """One visit, from its arrival to the last byte (or to the caller's leaving)."""
    visit = caller.visit
    await _until(clock, visit.at_s)
    task = asyncio.current_task()
    assert task is not None
    leaving = None
    if visit.leaves_after_s is not None:
        leave_at = visit.at_s + visit.leaves_after_s
        leave = (lambda: _cut_off(task)) if visit.cut_off else caller.leave
        leaving = clock.call_at(leave_at, leave)
    call = Call(RequestId(f"r{visit.number}"), "openai", _body(visit), [])
    try:
        await engine.answer(call, caller)
    except GatewayError as error:
        caller.fail(error)
    except asyncio.CancelledError:
        caller.cut_off = True
        raise
    finally:
        caller.over_at = clock.now()
        if leaving is not None:
            leaving.cancel()


def _cut_off(task: asyncio.Task[None]) -> None:
    task.cancel()


def _body(visit: Visit) -> bytes:
    body: dict[str, object] = {
        "model": visit.target,
        "messages": [{"role": "user", "content": "Say your words."}],
        "stream": visit.stream,
    }
    if visit.stream and visit.usage:
        body["stream_options"] = {"include_usage": True}
    return json.dumps(body).encode()


def _behaviour(cast: Cast, clock: Clock, suffered: dict[tuple[str, int], str | None]) -> Behaviour:
    """A provider that follows its spells."""
    well = healthy(cast.voice)
    ill = {name: calamity.behaviour(cast.voice) for name, calamity in CALAMITIES.items()}

    def behave(request: SimRequest, call: int, rng: random.Random) -> Script:
        spell = next((s for s in cast.spells if clock.now() < s.until_s), None)
        hit = rng.random()
        name = spell.calamity if spell is not None and hit < spell.share else None
        suffered[cast.voice.name, call] = name
        return (well if name is None else ill[name])(request, call, rng)

    return behave


def tell(story: Story) -> list[str]:
    """The story in lines, for a person who looks for the cause of a violation."""
    world = story.world
    lines = [f"seed {world.seed}: faults until {world.faults_end_s:.1f} s"]
    for cast in world.casts:
        spells = ", ".join(
            f"{s.calamity or 'well'}@{s.share:g} until {s.until_s:.1f}" for s in cast.spells
        )
        lines.append(f"  {cast.deployment}: {spells}")
        lines.append(f"    {world.topology.deployments[cast.deployment].policy}")
    lines.append(f"  {world.topology.policy}")
    lines += [f"{at:10.3f} {r}" for at, r in story.records if not isinstance(r, Noted)]
    return lines


def main(environment: Mapping[str, str]) -> int:
    """Play the world that `SEED` names (default 0), tell its story and judge it."""
    from outlast.sim.checkers import violations

    story = play(build_world(int(environment.get("SEED", "0"))))
    found = violations(story)
    lines = [*tell(story), f"digest {story.digest()}", *(found or ["no violation"])]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found else 0
