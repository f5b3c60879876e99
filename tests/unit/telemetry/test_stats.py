"""The `/stats` page, and the fan that feeds every consumer."""

import msgspec
from tests.unit.telemetry.records import EVERY_RECORD

from outlast.model.records import Record
from outlast.telemetry.fanout import Fanout
from outlast.telemetry.stats import Stats


class Row(msgspec.Struct):
    deployment: str
    asked_at: float


class Kept:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def observe(self, record: Record) -> None:
        self.records.append(record)


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


def test_every_consumer_gets_every_fact_in_order():
    one, other = Kept(), Kept()
    fan = Fanout(one, other)
    for record in EVERY_RECORD:
        fan.observe(record)
    assert one.records == other.records == list(EVERY_RECORD)
