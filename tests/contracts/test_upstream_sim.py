"""The in-memory upstream keeps the port's contract, in virtual time."""

from contextlib import asynccontextmanager

import pytest
from tests.contracts.upstream import RULES

from outlast.model.topology import Origin
from outlast.ports import UpstreamCall
from outlast.sim.upstream import SimUpstream
from outlast.sim.virtual_loop import run, running_clock

CALL = UpstreamCall(Origin("http", "sim-a", 80), b"POST", b"/v1/chat/completions", (), b"{}", 0.2)


@asynccontextmanager
async def make_world(script):
    upstream = SimUpstream(running_clock(), {"sim-a": lambda *_: script})
    yield upstream, CALL
    assert upstream.open_exchanges == 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_port_holds(rule):
    run(rule(make_world))
