"""The composition root: from a loaded configuration to a process that serves, drains and ends.

The only place that knows real classes. Owns signals and the order of the end: `/readyz` says no,
a moment for load balancers to notice, no new connections, running requests, log, connections to
providers. A second signal skips the waiting.

Surprising case: a listener on port 0 learns its port when it is bound, so `on_ready` is told it.
"""

import asyncio
import gc
import random
import signal
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from outlast import __version__
from outlast.config.load import Loaded, with_discovered
from outlast.config.origins import is_loopback
from outlast.engine.assembly import build_engine
from outlast.engine.clock import LoopClock
from outlast.engine.discovery import DiscoveryError, discover
from outlast.engine.health import DeploymentHealth
from outlast.engine.pipeline import Engine
from outlast.errors import StartError
from outlast.model.clock import Instant
from outlast.model.ids import ProviderName
from outlast.model.topology import Topology
from outlast.ports import Upstream
from outlast.protocols.table import DIALECTS
from outlast.server.app import App
from outlast.server.listen import Listener
from outlast.server.routes import DRAINING, ServerSettings
from outlast.sim.provider import DEMO
from outlast.sim.upstream import SimUpstream
from outlast.telemetry.fanout import Fanout
from outlast.telemetry.logs import Log, wants_colours, wants_text
from outlast.telemetry.metrics import Metrics
from outlast.telemetry.redactor import Redactor
from outlast.telemetry.stats import Stats
from outlast.telemetry.writer import LineWriter, standard_error
from outlast.upstream.client import HttpUpstream

NOTICE_S = 2.0
"""Between `/readyz` turning to 503 and the end of accepting: a load balancer's probe interval."""


class Ready(Struct, frozen=True):
    """The process takes requests at `host`:`port`. `models` are the names it answers to."""

    host: str
    port: int
    models: tuple[str, ...]


class Pages:
    """`server.routes.Pages`: what the process says about itself."""

    def __init__(self, stats: Stats, metrics: Metrics | None) -> None:
        self._stats = stats
        self._metrics = metrics
        self.not_ready: str | None = "starting"

    def ready(self) -> str | None:
        return self.not_ready

    def stats(self) -> bytes:
        return self._stats.render()

    def metrics(self) -> bytes:
        return b"" if self._metrics is None else self._metrics.render()


async def serve(loaded: Loaded, env: Mapping[str, str], on_ready: Callable[[Ready], None]) -> None:
    """Serve until a signal, then drain. Runs in a fresh event loop.

    Raises:
        StartError: the address is taken, or a provider's models cannot be listed.
    """
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop, _wall_s() - loop.time())
    writer = LineWriter(standard_error(), loop.call_later)
    upstream = _upstream(loaded, loop, clock)
    try:
        log = _log(loaded, env, writer, clock)
        topology = await _with_models(loaded, upstream, clock, log)
        await _Process(loaded, topology, upstream, clock, log, writer).run(on_ready)
    finally:
        await upstream.aclose()
        writer.close()


class _Process:
    """Everything that lives as long as the listener."""

    def __init__(
        self,
        loaded: Loaded,
        topology: Topology,
        upstream: Upstream,
        clock: LoopClock,
        log: Log,
        writer: LineWriter,
    ) -> None:
        self._log = log
        stats = Stats(__version__, clock.now, self._rows)
        metrics = None
        if loaded.telemetry.metrics:
            metrics = Metrics(
                __version__,
                self._states,
                pools=list(topology.pools),
                deployments=list(topology.deployments),
                lines_dropped=lambda: writer.dropped,
            )
        observer = Fanout(log, stats) if metrics is None else Fanout(log, stats, metrics)
        self.engine: Engine = build_engine(
            topology,
            DIALECTS,
            upstream=upstream,
            clock=clock,
            observer=observer,
            chance=random.random,
            debug=loaded.telemetry.debug_log,
        )
        self._pages = Pages(stats, metrics)
        server = loaded.server
        self._host = server.host
        settings = ServerSettings(
            request_body_max_bytes=server.request_body_bytes_max,
            metrics_token=loaded.telemetry.metrics_token,
            loopback=is_loopback(server.host),
        )
        self._listener = Listener(
            App(self.engine, self._pages, settings, DIALECTS, self._crashed),
            host=server.host,
            port=server.port,
            drain_s=server.drain_timeout_s,
        )
        self._told_to_stop = 0
        self._hurry = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[Ready], None]) -> None:
        """Serve until told to stop, and until what runs has ended."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._stop, number)

        def bound(port: int) -> None:
            self._pages.not_ready = None
            # A full collection over what a start allocates would stall requests for 70 ms.
            gc.collect()
            gc.freeze()
            on_ready(Ready(self._host, port, tuple(self.engine.models())))

        try:
            async with asyncio.TaskGroup() as group:
                notice = group.create_task(self._notice())
                await self._listener.serve(bound)
                notice.cancel()
        except ExceptionGroup as group_of_errors:
            # The listener's own error says why; the group only wraps it.
            raise group_of_errors.exceptions[0] from None
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _rows(self, now: Instant) -> list[DeploymentHealth]:
        return self.engine.world.health.rows(now)

    def _states(self) -> Iterator[tuple[str, str, int]]:
        return self.engine.world.health.states()

    def _stop(self, number: int) -> None:
        self._told_to_stop += 1
        if self._told_to_stop > 1 or number == signal.SIGINT:
            self._hurry.set()  # a person at a terminal, or somebody who asks twice, does not wait
        self._pages.not_ready = DRAINING
        self._stopping.set()

    async def _notice(self) -> None:
        """From the signal to the end of accepting."""
        await self._stopping.wait()
        self._log.state.info("draining")
        try:
            async with asyncio.timeout(NOTICE_S):
                await self._hurry.wait()
        except TimeoutError:
            pass  # the usual way
        self._listener.stop()

    def _crashed(self, request_id: str, error: Exception) -> None:
        self._log.state.error("request_crashed", request_id=request_id, exc_info=error)


def _wall_s() -> float:
    return time.time()  # noqa: TID251 - read once: from here on the loop's clock carries it


def _upstream(loaded: Loaded, loop: asyncio.AbstractEventLoop, clock: LoopClock) -> Upstream:
    if loaded.origin != "simulated":
        secure = any(p.origin.scheme == "https" for p in loaded.topology.providers.values())
        # Made here and once: it costs 40 ms, which the first request would wait for.
        context = ssl.create_default_context() if secure else None
        return HttpUpstream(loop, ssl_context=context)
    hosts = {p.origin.host: DEMO[name] for name, p in loaded.topology.providers.items()}
    return SimUpstream(clock, hosts)


def _log(loaded: Loaded, env: Mapping[str, str], writer: LineWriter, clock: LoopClock) -> Log:
    terminal = sys.stderr.isatty()
    return Log(
        writer,
        Redactor(_secrets(loaded)),
        clock.wall,
        text=wants_text(loaded.telemetry.log_format, terminal=terminal),
        colours=wants_colours(env, terminal=terminal),
        debug=loaded.telemetry.debug_log,
    )


def _secrets(loaded: Loaded) -> Iterable[str]:
    """Every text that no log line may hold."""
    for provider in loaded.topology.providers.values():
        if provider.credential.secret:
            yield provider.credential.secret
        for _, value in provider.headers:
            yield value.decode("latin-1")
    if loaded.telemetry.metrics_token:
        yield loaded.telemetry.metrics_token


async def _with_models(loaded: Loaded, upstream: Upstream, clock: LoopClock, log: Log) -> Topology:
    """The topology with the models that providers list, where only their key is known."""
    topology = loaded.topology
    for name in loaded.discover:
        provider = topology.providers[ProviderName(name)]
        try:
            ids = await discover(
                provider, DIALECTS[provider.dialect], upstream=upstream, clock=clock
            )
        except DiscoveryError as error:
            raise StartError(
                f"cannot list the models of {provider.display_name}: {error}. "
                "Check its key and the network, or name deployments in outlast.yaml."
            ) from error
        topology = with_discovered(topology, provider.name, ids)
        log.state.info("models_discovered", provider=provider.name, models=len(ids))
    return topology
