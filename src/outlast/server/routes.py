"""Which path is what. Owns paths, methods and the pages for operators; no request is answered here.

The table is a plain dictionary, for the lookup is on every request's path.
"""

from enum import Enum
from hmac import compare_digest
from typing import Protocol

import msgspec
from msgspec import Struct

from outlast.errors import GatewayError, model_not_found
from outlast.ports import Headers
from outlast.server.errors import token_not_set, unauthenticated


class Page(Enum):
    """What a path stands for."""

    CHAT = "chat"
    MODELS = "models"
    MODEL = "model"
    ROOT = "root"
    LIVE = "live"
    READY = "ready"
    STATS = "stats"
    METRICS = "metrics"


class Route(Struct, frozen=True):
    """One path. `allow` is the value of an `Allow` field (RFC 9110 section 10.2.1)."""

    page: Page
    methods: frozenset[str]
    allow: bytes


class ServerSettings(Struct, frozen=True):
    """What the data plane needs of the configuration.

    `loopback`: the listener is reachable from this machine only.
    """

    request_body_max_bytes: int = 32 * 1024 * 1024
    metrics_token: str | None = None
    loopback: bool = True

    def __repr__(self) -> str:
        return f"ServerSettings({self.request_body_max_bytes}, loopback={self.loopback})"


class Pages(Protocol):
    """What the process says about itself. Each answers at once."""

    def ready(self) -> str | None:
        """None: ready. Else why not; `DRAINING` also turns new requests away."""
        ...

    def stats(self) -> bytes: ...

    def metrics(self) -> bytes: ...


DRAINING = "draining"

JSON: Headers = [(b"content-type", b"application/json")]
PROMETHEUS: Headers = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
TEXT: Headers = [(b"content-type", b"text/plain; charset=utf-8")]

ROOT_TEXT = b"""Outlast, an LLM gateway.

Point an OpenAI SDK at /v1 of this address.
GET /v1/models lists what can be asked for, /healthz, /readyz, /stats and /metrics say how it goes.
"""


def _route(page: Page, *methods: str) -> Route:
    return Route(page, frozenset(methods), ", ".join(methods).encode("ascii"))


_CHAT = _route(Page.CHAT, "POST")
_MODELS = _route(Page.MODELS, "GET", "HEAD")
_MODEL = _route(Page.MODEL, "GET", "HEAD")
_LIVE = _route(Page.LIVE, "GET", "HEAD")
_PREFIXES = ("/v1", "/api/v1", "/openai/v1")

ROUTES: dict[str, Route] = {
    **{f"{prefix}/chat/completions": _CHAT for prefix in _PREFIXES},
    **{f"{prefix}/models": _MODELS for prefix in _PREFIXES},
    "/": _route(Page.ROOT, "GET", "HEAD"),
    "/healthz": _LIVE,
    "/livez": _LIVE,
    "/readyz": _route(Page.READY, "GET", "HEAD"),
    "/stats": _route(Page.STATS, "GET", "HEAD"),
    "/metrics": _route(Page.METRICS, "GET", "HEAD"),
}


def find_route(path: str) -> tuple[Route, str] | None:
    """The route of a decoded path, and the model's name where the path holds one."""
    route = ROUTES.get(path)
    if route is not None:
        return route, ""
    for prefix in _PREFIXES:
        start = f"{prefix}/models/"
        if path.startswith(start) and len(path) > len(start):
            return _MODEL, path[len(start) :]
    return None


def check_operator(settings: ServerSettings, authorization: bytes | None) -> GatewayError | None:
    """May this caller see the operators' pages? None: yes."""
    if settings.loopback:
        return None
    if settings.metrics_token is None:
        return token_not_set()
    expected = b"bearer " + settings.metrics_token.encode()
    given = authorization or b""
    scheme, _, token = given.partition(b" ")
    if compare_digest(scheme.lower() + b" " + token.strip(), expected):
        return None
    return unauthenticated()


def models_body(names: list[str]) -> bytes:
    """The listing in OpenAI's shape. `created` is unknown to us, and a number to the SDKs."""
    return msgspec.json.encode({"object": "list", "data": [_model(name) for name in names]})


def model_body(name: str, names: list[str]) -> bytes:
    """One entry of the listing.

    Raises:
        GatewayError: 404, no such name.
    """
    if name not in names:
        raise model_not_found(name)
    return msgspec.json.encode(_model(name))


def _model(name: str) -> dict[str, str | int]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "outlast"}


def ready_answer(reason: str | None) -> tuple[int, bytes]:
    """Status and body of `/readyz`."""
    if reason is None:
        return 200, b'{"status":"ready"}'
    return 503, msgspec.json.encode({"status": "not ready", "reason": reason})
