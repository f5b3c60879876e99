"""`ports.Upstream` in memory: simulated providers without a socket.

Owns the open exchanges and the number of calls per host. What a provider does is its
`Behaviour`'s decision; a host that has none does not resolve. Nothing is called back from inside
`dispatch`, as the port demands, and a paused exchange keeps what it has not delivered.

Surprising case: a pause also holds back the end and a failure, as with a socket that is not read.
"""

import random
from collections import Counter, deque
from collections.abc import Mapping

from outlast.model.fault import Break, Phase, TransportFailure
from outlast.ports import Clock, Handle, Sink, UpstreamCall
from outlast.sim.player import Player
from outlast.sim.provider import Behaviour, SimRequest
from outlast.sim.script import (
    Blackhole,
    Body,
    Cut,
    End,
    Hang,
    Head,
    Refuse,
    Script,
    Step,
    Wait,
    content_length,
)


class SimUpstream:
    """Carries calls to behaviours, by `origin.host`.

    `calls` counts dispatches per host, `open_exchanges` those that are neither ended nor
    cancelled, `open_most` the greatest number of them at once.
    """

    def __init__(self, clock: Clock, behaviours: Mapping[str, Behaviour], *, seed: int = 0) -> None:
        self._clock = clock
        self._behaviours = behaviours
        self._seed = seed
        self._chance: dict[str, random.Random] = {}
        self._open: set[SimExchange] = set()
        self.calls: Counter[str] = Counter()
        self.open_most = 0

    @property
    def open_exchanges(self) -> int:
        return len(self._open)

    def dispatch(self, call: UpstreamCall, sink: Sink) -> "SimExchange":
        exchange = SimExchange(self._clock, sink, self._open)
        self._open.add(exchange)
        self.open_most = max(self.open_most, len(self._open))
        host = call.origin.host
        behaviour = self._behaviours.get(host)
        if behaviour is None:
            failure = TransportFailure(Phase.DNS, Break.REFUSED, f"{host} does not resolve")
            exchange.begin_failure(failure)
            return exchange
        chance = self._chance.setdefault(host, random.Random(f"{self._seed}:{host}"))  # noqa: S311
        request = SimRequest(call.method, call.target, call.headers, call.body)
        number = self.calls[host]
        self.calls[host] += 1
        exchange.begin(behaviour(request, number, chance), call.connect_timeout_s)
        return exchange

    async def aclose(self) -> None:
        """Fail what is still open, as closing its connection would."""
        for exchange in list(self._open):
            exchange.cut("the upstream leg was closed")


class SimExchange:
    """One call in progress."""

    def __init__(self, clock: Clock, sink: Sink, registry: "set[SimExchange]") -> None:
        self.replaced = False
        self._clock = clock
        self._sink = sink
        self._registry = registry
        self._player: Player | None = None
        self._timer: Handle | None = None
        self._held: deque[Step] = deque()
        self._paused = False
        self._over = False
        self._head_seen = False
        self._owed_bytes: int | None = None

    def begin(self, script: Script, connect_timeout_s: float) -> None:
        """Play `script` from the next turn on."""
        if script and isinstance(script[0], Blackhole):
            unheard = TransportFailure(Phase.CONNECT, Break.TIMEOUT, "no answer to the connection")
            self._fail_at(self._clock.now() + connect_timeout_s, unheard)
            return
        self._player = Player(script, self._clock, self._take)
        self._player.start()

    def begin_failure(self, failure: TransportFailure) -> None:
        """Fail at the next turn."""
        self._fail_at(self._clock.now(), failure)

    def cancel(self) -> None:
        self._over = True
        self._registry.discard(self)
        self._held.clear()
        if self._player is not None:
            self._player.stop()
        if self._timer is not None:
            self._timer.cancel()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused:
            return
        self._paused = False
        if self._held and not self._over:
            self._timer = self._clock.call_at(self._clock.now(), self._release)

    def cut(self, detail: str) -> None:
        """End with a reset, unless over."""
        self.fail(TransportFailure(self._phase, Break.RESET, detail))

    def fail(self, failure: TransportFailure) -> None:
        """End with `failure`, unless over."""
        if self._over:
            return
        self.cancel()
        self._sink.on_failure(failure)

    @property
    def _phase(self) -> Phase:
        return Phase.BODY if self._head_seen else Phase.HEAD

    def _fail_at(self, when: float, failure: TransportFailure) -> None:
        self._timer = self._clock.call_at(when, lambda: self.fail(failure))

    def _take(self, step: Step) -> None:
        """A step came due: deliver it, or keep it behind what a pause holds back."""
        if self._paused or self._held:
            self._held.append(step)
        else:
            self._deliver(step)

    def _release(self) -> None:
        while self._held and not self._paused and not self._over:
            self._deliver(self._held.popleft())

    def _deliver(self, step: Step) -> None:
        match step:
            case Head(status, headers):
                self._head_seen = True
                self._owed_bytes = content_length(headers)
                self._sink.on_head(status, list(headers))
            case Body(data):
                if self._owed_bytes is not None:
                    self._owed_bytes -= len(data)
                self._sink.on_data(data)
            case End():
                self._end()
            case Cut():
                self.cut("connection reset")
            case Refuse():
                self.fail(TransportFailure(Phase.CONNECT, Break.REFUSED, "connection refused"))
            case Wait() | Hang() | Blackhole():
                return  # the player does the waiting; silence needs no step of its own

    def _end(self) -> None:
        if not self._head_seen or self._owed_bytes:
            self.fail(TransportFailure(self._phase, Break.EOF, "closed before the answer's end"))
            return
        self.cancel()
        self._sink.on_end()
