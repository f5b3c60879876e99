"""One seeded world: who is there, what goes wrong when, and who calls.

`build_world` draws everything from the seed and touches nothing. `story.play` runs it, `checkers`
judge what happened.

A world has two phases. Until `faults_end_s` providers have spells of trouble out of the catalogue;
after it all are well, and once the longest rest is over each deployment is asked directly, so that
every breaker has the traffic that it needs to close.

`SEED=n python -m outlast.sim.world` tells the story of one world.
"""

import os
import random
import sys

from msgspec import Struct

from outlast.model.ids import (
    CredentialId,
    DeploymentName,
    ModelName,
    PoolName,
    ProviderName,
)
from outlast.model.policy import (
    Backoff,
    BreakerPolicy,
    CandidatePolicy,
    RequestPolicy,
    RestPolicy,
    RetryPolicy,
    RetryWhen,
    Timeouts,
)
from outlast.model.topology import (
    Credential,
    Deployment,
    Member,
    Origin,
    Pool,
    Provider,
    Topology,
)
from outlast.sim.calamities import CALAMITIES
from outlast.sim.provider import Voice

POOL = PoolName("pool")
CALM_S = 2_000.0
"""From the end of the faults to the direct questions: longer than any attempt and rest together
(no world draws a rest above 100 s or a deadline above 400 s)."""

CALM_GAP_S = 60.0
"""Between the questions of the calm phase, so that none meets another."""


class Spell(Struct, frozen=True):
    """Until `until_s` this share of a provider's calls meets `calamity` (None: it is well)."""

    until_s: float
    calamity: str | None
    share: float = 1.0


class Cast(Struct, frozen=True):
    """One provider with its one deployment and its troubles."""

    voice: Voice
    deployment: DeploymentName
    spells: tuple[Spell, ...]

    @property
    def always_well(self) -> bool:
        return all(spell.calamity is None for spell in self.spells)


class Visit(Struct, frozen=True):
    """One call. Times are seconds; `leaves_after_s` and `slow_write_s` None: patient, prompt.

    `cut_off`: the request is cancelled inside the gateway instead of the caller leaving.
    """

    number: int
    at_s: float
    target: str
    stream: bool
    usage: bool
    leaves_after_s: float | None = None
    cut_off: bool = False
    slow_write_s: float | None = None


class World(Struct, frozen=True):
    """Everything that a seed decides."""

    seed: int
    casts: tuple[Cast, ...]
    topology: Topology
    visits: tuple[Visit, ...]
    faults_end_s: float

    @property
    def calm_from_s(self) -> float:
        """From here on all is well and everybody has rested."""
        return self.faults_end_s + CALM_S


def build_world(seed: int) -> World:
    """Draw a world. The same seed gives the same world on every machine."""
    rng = random.Random(f"world {seed}")  # noqa: S311 - chance of a simulation
    faults_end_s = rng.uniform(60.0, 240.0)
    names = [f"sim-{letter}" for letter in "abcd"[: rng.randint(1, 4)]]
    # Never the first of several: in listed order nobody would ask the others.
    well = rng.choice(names[1:]) if len(names) > 1 and rng.random() < 0.6 else None
    featured = list(CALAMITIES)[seed % len(CALAMITIES)]
    casts = tuple(
        _well(name, faults_end_s, rng) if name == well else _ill(name, faults_end_s, featured, rng)
        for name in names
    )
    topology = _topology(casts, rng)
    visits = _visits(casts, topology, faults_end_s, rng)
    return World(seed, casts, topology, visits, faults_end_s)


def _voice(name: str, rng: random.Random) -> Voice:
    return Voice(
        name,
        words=rng.randint(4, 30),
        first_token_s=rng.uniform(0.05, 1.0),
        gap_s=rng.choice([0.0, 0.02, 0.3]),
    )


def _well(name: str, faults_end_s: float, rng: random.Random) -> Cast:
    return Cast(_voice(name, rng), _deployment(name), (Spell(faults_end_s, None),))


def _ill(name: str, faults_end_s: float, featured: str, rng: random.Random) -> Cast:
    """Spells at random; the first provider's first one is what the seed features."""
    ends = sorted(rng.uniform(0.0, faults_end_s) for _ in range(rng.randint(0, 3)))
    spells = [_spell(end, rng) for end in (*ends, faults_end_s)]
    if name == "sim-a":
        spells.insert(0, Spell(faults_end_s / 5.0, featured))
    return Cast(_voice(name, rng), _deployment(name), tuple(spells))


def _deployment(name: str) -> DeploymentName:
    return DeploymentName(f"{name}/model")


def _spell(until_s: float, rng: random.Random) -> Spell:
    if rng.random() < 0.25:
        return Spell(until_s, None)
    return Spell(until_s, rng.choice(list(CALAMITIES)), rng.choice([1.0, 1.0, 0.5, 0.3]))


def _candidate_policy(rng: random.Random) -> CandidatePolicy:
    first_token_s = rng.choice([3.0, 20.0, None])
    open_s = rng.uniform(2.0, 15.0)
    return CandidatePolicy(
        timeouts=Timeouts(
            connect_s=rng.choice([1.0, 2.0]),
            response_headers_s=rng.choice([None, None, 10.0]),
            first_token_s=first_token_s,
            first_token_last_s=None if first_token_s is None else rng.choice([first_token_s, 30.0]),
            request_s=rng.choice([10.0, 40.0]),
            idle_stream_s=rng.choice([5.0, 30.0]),
        ),
        retry=RetryPolicy(
            max_attempts=rng.randint(1, 3),
            when=rng.choice(list(RetryWhen)),
            max_retry_after_s=rng.choice([4.0, 10.0, None]),
        ),
        breaker=BreakerPolicy(
            enabled=rng.random() < 0.9,
            consecutive_failures=rng.randint(2, 5),
            open_duration_s=open_s,
            max_open_duration_s=open_s * rng.choice([1.0, 2.0]),
            half_open_max_calls=rng.choice([1, 1, 2]),
            successes_to_close=rng.choice([1, 1, 2]),
        ),
        rest=RestPolicy(
            throttle_s=rng.choice([None, 30.0]),
            auth_s=rng.choice([None, 60.0]),
            billing_s=rng.choice([None, 60.0]),
            not_found_s=30.0,
        ),
    )


def _topology(casts: tuple[Cast, ...], rng: random.Random) -> Topology:
    policy = RequestPolicy(
        deadline_s=rng.choice([5.0, 60.0, 240.0, 360.0]),
        max_failovers=rng.choice([None, None, 3, 1]),
        max_total_attempts=rng.choice([None, 8, 3]),
        hop_backoff=rng.choice([None, None, Backoff(base_delay_s=0.1, max_delay_s=1.0)]),
        on_rate_limit=rng.random() < 0.8,
    )
    providers: dict[ProviderName, Provider] = {}
    deployments: dict[DeploymentName, Deployment] = {}
    for cast in casts:
        name = ProviderName(cast.voice.name)
        providers[name] = Provider(
            name=name,
            display_name=cast.voice.name,
            tag=cast.voice.name,
            dialect="openai",
            origin=Origin("http", cast.voice.name, 80),
            base_path="/v1",
            credential=Credential(CredentialId(f"{name}#0"), "secret"),
        )
        deployments[cast.deployment] = Deployment(
            name=cast.deployment,
            provider=name,
            upstream_model="model",
            serves=ModelName("served"),
            policy=_candidate_policy(rng),
            max_concurrent=rng.choice([None, None, None, 2]),
        )
    members = tuple(Member(d.name, d.policy) for d in deployments.values())
    pools = {POOL: Pool(POOL, members, policy)}
    return Topology(providers, deployments, pools, policy)


def _visits(
    casts: tuple[Cast, ...], topology: Topology, faults_end_s: float, rng: random.Random
) -> tuple[Visit, ...]:
    visits: list[Visit] = []
    for _ in range(rng.randint(40, 100)):
        at_s = rng.uniform(0.0, faults_end_s * 1.2)
        visits.append(_visit(len(visits), at_s, rng))
    at_s = faults_end_s + CALM_S
    for cast in casts:
        for _ in range(topology.deployments[cast.deployment].policy.breaker.successes_to_close):
            visits.append(Visit(len(visits), at_s, cast.deployment, stream=True, usage=False))
            at_s += CALM_GAP_S
    for _ in range(5):
        visits.append(Visit(len(visits), at_s, POOL, stream=rng.random() < 0.5, usage=True))
        at_s += CALM_GAP_S
    return tuple(visits)


def _visit(number: int, at_s: float, rng: random.Random) -> Visit:
    stream = rng.random() < 0.6
    leaves = rng.uniform(0.0, 8.0) if rng.random() < 0.2 else None
    return Visit(
        number,
        at_s,
        POOL,
        stream=stream,
        usage=rng.random() < 0.5,
        leaves_after_s=leaves,
        cut_off=leaves is not None and rng.random() < 0.2,
        slow_write_s=rng.uniform(0.1, 20.0) if stream and rng.random() < 0.1 else None,
    )


if __name__ == "__main__":
    from outlast.sim.story import main

    sys.exit(main(os.environ))
