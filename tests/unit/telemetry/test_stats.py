"""The `/stats` page, and the fan that feeds every consumer."""

import msgspec
from tests.unit.telemetry.records import EVERY_RECORD

from outlast.model.records import BreakerMoved
from outlast.telemetry.fanout import Consuming, Fanout
from outlast.telemetry.stats import Stats


class Row(msgspec.Struct):
    deployment: str
    asked_at: float


class Taker:
    def __init__(self, consuming: Consuming) -> None:
        self.consuming = consuming


def test_the_page_counts_since_the_start_and_reads_health_when_asked():
    clock = [100.0]
    stats = Stats("1.2.3", lambda: clock[0], lambda now: [Row("a", now)])
    for record in EVERY_RECORD:
        stats.observe(record)
    clock[0] = 107.5
    assert msgspec.json.decode(stats.render()) == {
        "version": "1.2.3",
        "uptime_s": 7.5,
        "totals": {
            "requests": 2,
            "outcomes": {"ok": 1, "exhausted": 1},
            "saved": 1,
            "attempts": 2,
            "failovers": 1,
            "breaker_trips": 1,
        },
        "deployments": [{"deployment": "a", "asked_at": 107.5}],
    }


def test_every_consumer_gets_the_facts_that_it_takes_in_order():
    told: list[tuple[str, object]] = []
    kinds = {type(record) for record in EVERY_RECORD}
    all_of_them = Taker({kind: lambda record: told.append(("all", record)) for kind in kinds})
    moves = Taker({BreakerMoved: lambda record: told.append(("moves", record))})
    fan = Fanout(all_of_them, moves)
    expected: list[tuple[str, object]] = []
    for record in EVERY_RECORD:
        fan.observe(record)
        expected.append(("all", record))
        if isinstance(record, BreakerMoved):
            expected.append(("moves", record))
    assert told == expected
    assert any(who == "moves" for who, _ in told)
