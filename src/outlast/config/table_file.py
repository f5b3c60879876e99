"""Rows of the table: the server, telemetry, and everything that is not policy at the top level.

Owns names, defaults, bounds and meanings of these keys; `table` puts the rows together.
"""

from functools import partial

from outlast.config.key import Key, Kind, Scope, inert

FILE = Scope.FILE
_inert = partial(inert, scope=FILE)


def later(path: str, kind: Kind, meaning: str, *off: object) -> Key:
    """A key that is off until it is built. `off` holds further spellings of off."""
    return Key(path, kind, None, FILE, meaning, built=False, only=(None, *off))


TOP = (
    Key("version", Kind.INT, 1, FILE, "Version of this file's format.", only=(1,)),
    Key(
        "profile",
        Kind.WORD,
        "standard",
        FILE,
        "A named set of defaults.",
        words=("standard", "busbar", "hotel", "buzz", "llm-004"),
        only=("standard",),
    ),
)

SERVER = (
    Key(
        "server.listen",
        Kind.STRING,
        "127.0.0.1:8080",
        FILE,
        "Address and port. `OUTLAST_LISTEN` in the environment wins.",
    ),
    Key("server.workers", Kind.INT, 1, FILE, "Processes.", at_least=1, only=(1,)),
    Key(
        "server.auth",
        Kind.WORD,
        "auto",
        FILE,
        "`auto` is open on loopback. A listener beyond loopback that is open needs --insecure.",
        words=("auto", "keys", "open"),
        only=("auto", "open"),
    ),
    Key(
        "server.request_body_max",
        Kind.SIZE,
        "32MiB",
        FILE,
        "Greatest size of a caller's body.",
        at_least=1024,
        at_most=2**31,
    ),
    later("server.max_inbound_concurrent", Kind.INT, "Requests at once."),
    Key(
        "server.drain_timeout",
        Kind.DURATION,
        "30s",
        FILE,
        "How long a stop waits for running requests.",
        above=0,
    ),
    later("server.admin_listen", Kind.STRING, "Listener of the admin API and the dashboard."),
    later("server.deadline_headers", Kind.STRINGS, "Headers in which callers say a deadline.", ()),
)

TELEMETRY = (
    Key("telemetry.metrics", Kind.BOOL, True, FILE, "Serves `/metrics`."),
    Key(
        "telemetry.metrics_token",
        Kind.SECRET,
        None,
        FILE,
        "Bearer token of `/metrics` and `/stats`.",
        null=True,
    ),
    later("telemetry.otlp_endpoint", Kind.STRING, "Where traces go."),
    Key(
        "telemetry.log_format",
        Kind.WORD,
        "auto",
        FILE,
        "`auto` is text on a terminal and json elsewhere.",
        words=("auto", "json", "text"),
    ),
    Key(
        "telemetry.debug_log",
        Kind.BOOL,
        False,
        FILE,
        "Logs every attempt and skip. `DEBUG_LOG` in the environment wins.",
    ),
    later("telemetry.webhook", Kind.STRING, "Where alerts go."),
)

LATER = (
    later("store", Kind.GROUP, "Where requests, keys and settings are kept.", {}),
    later("store.url", Kind.STRING, "Address of the database."),
    later("shared_state", Kind.GROUP, "What processes share.", {}),
    later("shared_state.url", Kind.STRING, "Address of the shared state."),
    later("master_key", Kind.SECRET, "Encrypts keys at rest."),
    later("tenants", Kind.GROUP, "Who pays.", {}),
    later("keys", Kind.GROUP, "Virtual keys.", {}),
    later("on_dependency_loss", Kind.GROUP, "What happens when a dependency is lost.", {}),
    later("on_dependency_loss.spend_limits", Kind.STRING, "Spend limits without their state."),
    later("on_dependency_loss.idempotency", Kind.STRING, "Idempotency without its store."),
    later("idempotency.enabled", Kind.BOOL, "Answers a repeated key with the same answer.", False),
    _inert("idempotency.store", Kind.STRING, "auto", "Where answers are kept."),
    _inert("idempotency.concurrent", Kind.STRING, "join", "What a second caller does."),
    _inert("idempotency.join_timeout", Kind.DURATION, "60s", "How long it waits.", above=0),
    _inert("idempotency.mismatch_status", Kind.INT, 422, "Status of a key with another body."),
    _inert("idempotency.key_ttl", Kind.DURATION, "24h", "Life of a key.", above=0),
    _inert("idempotency.content_ttl", Kind.DURATION, "24h", "Life of an answer.", above=0),
    _inert("idempotency.max_body", Kind.SIZE, "4MiB", "Greatest answer kept.", above=0),
    later("discovery.on_startup", Kind.BOOL, "Lists providers' models at start.", False),
    later("discovery.interval", Kind.DURATION, "Lists them again."),
    later("cache.enabled", Kind.BOOL, "Answers repeated requests from memory.", False),
    _inert("cache.ttl", Kind.DURATION, "10m", "Life of a cached answer.", above=0),
    _inert("cache.max_body", Kind.SIZE, "1MiB", "Greatest answer cached.", above=0),
    _inert("cache.store", Kind.STRING, "auto", "Where they are kept."),
    later("catalogue", Kind.GROUP, "Policy by model.", {}),
    later("drill", Kind.GROUP, "What a drill demands.", {}),
    later("drill.require", Kind.GROUP, "Least share of successes and most dirty answers.", {}),
    later("log_retention", Kind.DURATION, "How long request rows are kept."),
    later("key_cache_ttl", Kind.DURATION, "How long a virtual key is remembered."),
)
