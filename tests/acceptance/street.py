"""Simulated providers on loopback sockets, and the gateways in front of them."""

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from tests.acceptance.process import Gateway

from outlast.sim.provider import Behaviour, Voice, healthy
from outlast.sim.sockets import SimServer, serve

T = TypeVar("T")

KEY = "sk-of-a-provider"
KEY_VARIABLE = "KEY_OF_EVERY_PROVIDER"

RUN_LIMIT_S = 60.0

QUICK: Mapping[str, Any] = {
    "server": {"listen": "127.0.0.1:0", "drain_timeout": "2s"},
    "timeouts": {"first_token": "800ms", "idle_stream": "500ms", "request": "1500ms"},
    "failover": {"deadline": "20s"},
    "retry": {"base_delay": "20ms", "max_delay": "50ms"},
    "circuit_breaker": {"open_duration": "500ms", "max_open_duration": "500ms", "open_jitter": 0},
}
"""The usual patience, divided by ten or more."""


def voice(name: str) -> Voice:
    """A provider that does not dawdle."""
    return Voice(name, words=6, first_token_s=0.0, gap_s=0.001)


def well(name: str) -> Behaviour:
    return healthy(voice(name))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the leaves of `over`."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = merged(below, value)
        else:
            result[key] = value
    return result


class Street:
    """Providers in a loop of their own thread. `at` holds them by name."""

    def __init__(self, home: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.at: dict[str, SimServer] = {}
        self._home = home
        self._ports: dict[str, int] = {}
        self._gateways: list[Gateway] = []
        self._stack = AsyncExitStack()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine beside the providers."""
        return asyncio.run_coroutine_threadsafe(main, self.loop).result(RUN_LIMIT_S)

    def open(self, name: str, behaviour: Behaviour) -> SimServer:
        """A provider that listens."""
        server = self.run(self._stack.enter_async_context(serve(behaviour)))
        self.at[name] = server
        self._ports[name] = server.port
        return server

    def closed(self, name: str, port: int) -> None:
        """A provider that should be at `port`, where nobody listens."""
        self._ports[name] = port

    def gateway(
        self,
        pools: Mapping[str, Sequence[str]],
        *,
        env: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Gateway:
        """The installed command in front of these pools of provider names."""
        file = self._home / f"{len(self._gateways)}.yaml"
        file.write_text(json.dumps(merged(self._document(pools), settings)), encoding="utf-8")
        keys = {KEY_VARIABLE: KEY, **(env or {})}
        gateway = Gateway(["--config", str(file), "serve"], self._home, keys)
        self._gateways.append(gateway)
        return gateway

    def close(self) -> None:
        try:
            for gateway in self._gateways:
                gateway.stop()
        finally:
            for gateway in self._gateways:
                gateway.kill()
            self.run(self._stack.aclose())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()

    def _document(self, pools: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        names = dict.fromkeys(name for members in pools.values() for name in members)
        return {
            **QUICK,
            "providers": {
                name: {
                    "dialect": "openai",
                    "base_url": f"http://127.0.0.1:{self._ports[name]}/v1",
                    "api_key": {"env": KEY_VARIABLE},
                }
                for name in names
            },
            "deployments": {
                name: {"provider": name, "upstream_model": f"model-at-{name}"} for name in names
            },
            "pools": {
                pool: {"members": [{"deployment": name} for name in members]}
                for pool, members in pools.items()
            },
        }
