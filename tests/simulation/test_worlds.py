"""Seeded worlds: whatever goes wrong in them, the promises hold. `make sim SEED=n` replays one."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from outlast.model.records import AttemptEnded, RequestEnded
from outlast.sim.calamities import CALAMITIES
from outlast.sim.checkers import violations
from outlast.sim.story import main, play
from outlast.sim.world import build_world

SEEDS = range(50)
PROCESS_LIMIT_S = 60.0


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_must_not_be_happens_in_a_world(seed):
    assert violations(play(build_world(seed))) == []


@pytest.mark.parametrize("seed", [3, 4])
def test_the_same_seed_gives_the_same_story(seed):
    assert play(build_world(seed)).digest() == play(build_world(seed)).digest()


def test_another_seed_gives_another_story():
    assert play(build_world(3)).digest() != play(build_world(4)).digest()


def _digest_in_a_process(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "SEED": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "outlast.sim.world"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PROCESS_LIMIT_S,
        check=True,
    )
    return next(line for line in done.stdout.splitlines() if line.startswith("digest "))


@pytest.mark.slow
def test_a_story_does_not_depend_on_the_process():
    assert _digest_in_a_process("1") == _digest_in_a_process("2")


@pytest.mark.slow
def test_the_worlds_meet_every_calamity_and_every_kind_of_ending():
    met: set[str | None] = set()
    outcomes: Counter[str] = Counter()
    moves = 0
    for seed in SEEDS:
        story = play(build_world(seed))
        met |= set(story.suffered.values())
        for _, record in story.records:
            if isinstance(record, RequestEnded):
                outcomes[record.outcome] += 1
            moves += isinstance(record, AttemptEnded) and record.blamed
    assert met == {None, *CALAMITIES}
    assert set(outcomes) == {"ok", "exhausted", "client_error", "client_gone", "stream_broken"}
    assert moves > 100


def test_a_story_can_be_told(capsys):
    assert main({"SEED": "3"}) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("seed 3: faults until")
    assert told[-1] == "no violation"
    assert any("BreakerMoved" in line for line in told)
