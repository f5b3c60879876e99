"""One listener: binds, serves until told to stop, drains. Owns the life of its connections.

uvicorn's own server would take the signals and raise them again at the end, so that a graceful
stop exits with 143; here the process's composition root owns signals and calls `stop`. The loop is
the caller's. No lifespan, no access log, no forwarded headers: the peer is who it says it is.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

from uvicorn.config import Config
from uvicorn.server import Server

from outlast.errors import StartError
from outlast.server.limits import Limits
from outlast.server.protocol import DataPlaneProtocol
from outlast.server.sweeper import DataPlaneState

ABORT_WAIT_S = 1.0
"""How long requests may take to end after their connections were cut."""

DATE_EVERY_S = 1.0
"""The `date` field has a resolution of one second."""


class Listener(Server):
    """Serves one ASGI application on one address (or one socket that is already bound)."""

    def __init__(
        self,
        app: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        sock: socket.socket | None = None,
        limits: Limits | None = None,
        drain_s: float = 30.0,
    ) -> None:
        limits = limits or Limits()
        config = Config(
            app,
            host=host,
            port=port,
            loop="none",
            http=DataPlaneProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(limits.keep_alive_s),
        )
        super().__init__(config)
        self._limits = limits
        self._drain_s = drain_s
        self._sock = sock
        self._stopping: asyncio.Event | None = None
        self._accepting: asyncio.Server | None = None

    async def serve(  # type: ignore[override]
        self, on_bound: Callable[[int], None] | None = None
    ) -> None:
        """Serve until `stop`, then drain. `on_bound` hears the port once connections are taken.

        Raises:
            StartError: the address cannot be bound.
        """
        self._stopping = asyncio.Event()
        state = DataPlaneState(self._limits)
        self.server_state = state
        self.config.load()
        port = await self._bind()
        try:
            self._set_date()
            if on_bound is not None:
                on_bound(port)
            await self._until_stopped(self._stopping)
        finally:
            await self._drain(state)

    def stop(self) -> None:
        """Begin to drain. Harmless when called twice."""
        self.should_exit = True
        if self._stopping is not None:
            self._stopping.set()

    async def _bind(self) -> int:
        loop = asyncio.get_running_loop()
        config = self.config

        def connection() -> DataPlaneProtocol:
            return DataPlaneProtocol(config, self.server_state, {}, loop)

        try:
            if self._sock is not None:
                server = await loop.create_server(connection, sock=self._sock)
            else:
                server = await loop.create_server(
                    connection, host=config.host, port=config.port, backlog=config.backlog
                )
        except OSError as error:
            where = f"{config.host}:{config.port}"
            raise StartError(
                f"cannot listen on {where}: {error.strerror or error}. "
                "Choose a free address of this machine: OUTLAST_LISTEN=127.0.0.1:9000 in the "
                "environment, or server.listen in outlast.yaml."
            ) from error
        self._accepting = server
        self.started = True
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _until_stopped(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                async with asyncio.timeout(DATE_EVERY_S):
                    await stopping.wait()
            except TimeoutError:
                self._set_date()

    def _set_date(self) -> None:
        wall_s = time.time()  # noqa: TID251 - the wire's `date` field is wall time by definition
        date = formatdate(wall_s, usegmt=True).encode("ascii")
        self.server_state.default_headers = [(b"date", date)]

    async def _drain(self, state: DataPlaneState) -> None:
        """Stop accepting, let requests end within `drain_s`, cut what is left."""
        assert self._accepting is not None
        self._accepting.close()
        for connection in list(state.connections):
            connection.shutdown()
        if not await _happens(state.quiet, self._drain_s):
            for connection in list(state.connections):
                connection.transport.abort()
            await _happens(state.quiet, ABORT_WAIT_S)
        await _end_tasks(state.tasks)
        await self._accepting.wait_closed()


async def _happens(event: asyncio.Event, limit_s: float) -> bool:
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _end_tasks(tasks: set[asyncio.Task[None]]) -> None:
    """Wait for requests whose connection is gone; cancel those that do not take the hint."""
    if tasks:
        await asyncio.wait(tasks, timeout=ABORT_WAIT_S)
    for task in list(tasks):
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=ABORT_WAIT_S)
