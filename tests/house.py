"""A whole engine in virtual time with simulated providers: what most engine tests stand in."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from outlast.engine.assembly import build_engine
from outlast.engine.call import Call
from outlast.engine.pipeline import Engine
from outlast.errors import GatewayError
from outlast.model.ids import (
    CredentialId,
    DeploymentName,
    ModelName,
    PoolName,
    ProviderName,
    RequestId,
)
from outlast.model.policy import CandidatePolicy, RequestPolicy
from outlast.model.records import AttemptEnded, BreakerMoved, Record, RequestEnded
from outlast.model.topology import (
    Credential,
    Deployment,
    Member,
    Origin,
    Pool,
    Provider,
    Topology,
)
from outlast.ports import Headers
from outlast.protocols.table import DIALECTS
from outlast.sim.answers import read_text
from outlast.sim.provider import Behaviour
from outlast.sim.upstream import SimUpstream
from outlast.sim.virtual_loop import running_clock


class Caller:
    """`ports.Responder` that keeps what it is sent."""

    def __init__(self) -> None:
        self.gone = False
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = False
        self.aborted = False
        self.error: GatewayError | None = None
        self.first_byte = asyncio.Event()
        self.held_up: Callable[[], Any] | None = None  # awaited at every write
        self._on_gone: list[Callable[[], None]] = []

    def on_gone(self, callback: Callable[[], None]) -> None:
        self._on_gone.append(callback)

    def leave(self) -> None:
        self.gone = True
        for callback in self._on_gone:
            callback()

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        await self.start(status, headers)
        self.body = body
        self.ended = True

    async def start(self, status: int, headers: Headers) -> None:
        assert self.status is None, "two answers to one request"
        self.status = status
        self.headers = {n.decode(): v.decode() for n, v in headers}
        self.first_byte.set()

    async def write(self, data: bytes) -> None:
        assert self.status is not None
        assert not self.ended
        self.body += data
        if self.held_up is not None:
            await self.held_up()

    async def end(self) -> None:
        assert not self.ended
        self.ended = True

    def abort(self) -> None:
        self.aborted = True

    def events(self) -> list[Any]:
        """Data events of a streamed body, decoded; `[DONE]` as that word."""
        found = []
        for frame in self.body.split(b"\n\n"):
            if frame.startswith(b"data: "):
                data = frame[6:]
                found.append("[DONE]" if data == b"[DONE]" else msgspec.json.decode(data))
        return found

    def text(self) -> str:
        """The answer's text, streamed or whole."""
        if self.headers["content-type"].startswith("application/json"):
            content = msgspec.json.decode(self.body)["choices"][0]["message"]["content"]
            assert isinstance(content, str)
            return content
        chunks = [e for e in self.events() if e != "[DONE]"]
        return "".join(
            c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]
        )

    def answered_by(self) -> str | None:
        """Whose whole, unmixed answer this is; None: it is no such thing."""
        who = read_text(self.text())
        return None if who is None else who.provider


class House:
    """An engine, its providers, and everything that was observed. Made inside a running loop."""

    def __init__(
        self,
        behaviours: Mapping[str, Behaviour],
        *,
        policy: CandidatePolicy | None = None,
        request: RequestPolicy | None = None,
        slots: int | None = None,
        debug: bool = False,
    ) -> None:
        self.clock = running_clock()
        self.records: list[Record] = []
        self.upstream = SimUpstream(self.clock, behaviours)
        self.topology = _topology(
            list(behaviours), policy or CandidatePolicy(), request or RequestPolicy(), slots
        )
        self.engine: Engine = build_engine(
            self.topology,
            DIALECTS,
            upstream=self.upstream,
            clock=self.clock,
            observer=self,
            chance=lambda: 0.5,
            debug=debug,
        )

    def observe(self, record: Record) -> None:
        self.records.append(record)

    async def ask(
        self, *, stream: bool, caller: Caller | None = None, model: str = "pool", **members: Any
    ) -> Caller:
        """One request from its bytes to its end. A raised error is on the caller."""
        caller = caller or Caller()
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
        call = Call(RequestId("r"), "openai", msgspec.json.encode(body | members), [])
        try:
            await self.engine.answer(call, caller)
        except GatewayError as error:
            caller.error = error
        return caller

    def states(self) -> dict[str, str]:
        return {name: state for name, state, _ in self.engine.world.health.states()}

    def of(self, kind: type[Record]) -> list[Any]:
        return [r for r in self.records if isinstance(r, kind)]

    @property
    def moves(self) -> list[tuple[str, str]]:
        return [(m.deployment, m.after) for m in self.of(BreakerMoved)]

    @property
    def outcomes(self) -> list[tuple[str, str | None]]:
        return [(a.deployment, a.kind and a.kind.value) for a in self.of(AttemptEnded)]

    @property
    def ended(self) -> list[RequestEnded]:
        return self.of(RequestEnded)

    def assert_nothing_is_left(self) -> None:
        assert self.upstream.open_exchanges == 0
        assert [inflight for *_, inflight in self.engine.world.health.states() if inflight] == []


def _topology(
    names: list[str], policy: CandidatePolicy, request: RequestPolicy, slots: int | None
) -> Topology:
    providers = {
        ProviderName(n): Provider(
            ProviderName(n),
            n.upper(),
            n,
            "openai",
            Origin("http", n, 80),
            "/v1",
            Credential(CredentialId(f"{n}#0"), f"sk-{n}"),
        )
        for n in names
    }
    deployments = {
        DeploymentName(n): Deployment(
            DeploymentName(n), ProviderName(n), "sim-model", ModelName("m"), policy, slots
        )
        for n in names
    }
    members = tuple(Member(name, policy) for name in deployments)
    pools = {PoolName("pool"): Pool(PoolName("pool"), members, request)}
    return Topology(providers, deployments, pools, request)
