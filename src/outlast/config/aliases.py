"""Other spellings of the same settings, as the reference systems write them.

Owns the alias table and how a mapping is brought to canonical spelling. A canonical key that is
not built yet is refused later, under the name that the file used. Both spellings of one key in
one place is a problem, even when they agree.

Surprising cases: `503`, `status_503` and `least-bad` are values, not keys; they are in `VALUES`.
`breaker.trip.mode: consecutive` says what is the case anyway and is dropped.
"""

from collections.abc import Sequence

from msgspec import Struct

from outlast.config.report import Report, join
from outlast.config.tree import Tree


class Alias(Struct, frozen=True):
    """A spelling and the key that it stands for. `per_second`: units of a bare number in 1 s."""

    written: str
    canonical: str
    origin: str
    per_second: int = 1


def _busbar(written: str, canonical: str, per_second: int = 1) -> Alias:
    return Alias(written, canonical, "busbar", per_second)


POLICY_ALIASES = (
    _busbar("failover.timeout_secs", "failover.deadline"),
    _busbar("failover.max_hops", "failover.max_failovers"),
    _busbar("attempt_timeout_ms", "timeouts.response_headers", 1000),
    _busbar("breaker.trip.window_secs", "circuit_breaker.window"),
    _busbar("breaker.trip.threshold", "circuit_breaker.error_threshold"),
    _busbar("breaker.trip.min_requests", "circuit_breaker.min_requests"),
    _busbar("breaker.trip.consecutive_n", "circuit_breaker.consecutive_failures"),
    _busbar("breaker.base_cooldown_secs", "circuit_breaker.open_duration"),
    _busbar("breaker.max_cooldown_secs", "circuit_breaker.max_open_duration"),
    Alias("connect_timeout", "timeouts.connect", "llm-004"),
    Alias("first_token_timeout", "timeouts.first_token", "llm-004"),
    Alias("request_timeout", "timeouts.request", "llm-004, hotel"),
    Alias("idle_stream_timeout", "timeouts.idle_stream", "llm-004"),
    Alias("max_failovers", "failover.max_failovers", "llm-004"),
    Alias("failover_on_rate_limit", "failover.on_rate_limit", "hotel"),
    Alias("circuit_breaker_enabled", "circuit_breaker.enabled", "hotel"),
    Alias("circuit_breaker_threshold", "circuit_breaker.consecutive_failures", "hotel"),
    Alias("circuit_breaker_cooldown", "circuit_breaker.open_duration", "hotel"),
    Alias("ttft_timeout", "timeouts.first_token", "hotel"),
    Alias("stream_stall_timeout", "timeouts.idle_stream", "hotel"),
)
FILE_ALIASES = (*POLICY_ALIASES, _busbar("models", "deployments"))
MEMBER_ALIASES = (*POLICY_ALIASES, _busbar("model", "deployment"))

TRIP_MODE = "breaker.trip.mode"
"""busbar's choice of trigger. `error_rate` is `circuit_breaker.error_threshold`, not built yet."""

VALUES = {"503": "reject", "status_503": "reject", "least-bad": "least_bad"}
"""Historic words of `on_exhausted`."""


def normalised(
    tree: dict[str, Tree], path: str, aliases: Sequence[Alias], report: Report
) -> dict[str, Tree]:
    """A copy of one place's mapping in canonical spelling; `path` is that place."""
    result = _copy(tree)
    _drop_trip_mode(result, path, report)
    for alias in aliases:
        found, value = _take(result, alias.written)
        if not found:
            continue
        written, canonical = join_all(path, alias.written), join_all(path, alias.canonical)
        if not _put(result, alias.canonical, _scaled(value, alias.per_second)):
            message = f"says the same as {canonical}; keep one of the two spellings"
            report.problem(written, message)
        else:
            report.alias(written, canonical)
    return result


def join_all(path: str, dotted: str) -> str:
    """The path of a key of several words inside `path`."""
    for name in dotted.split("."):
        path = join(path, name)
    return path


def _copy(tree: dict[str, Tree]) -> dict[str, Tree]:
    return {k: _copy(v) if isinstance(v, dict) else v for k, v in tree.items()}


def _drop_trip_mode(tree: dict[str, Tree], path: str, report: Report) -> None:
    found, mode = _take(tree, TRIP_MODE)
    if not found:
        return
    written = join_all(path, TRIP_MODE)
    if mode == "consecutive":
        report.alias(written, join_all(path, "circuit_breaker.consecutive_failures"))
    elif mode == "error_rate":
        report.problem(
            written,
            "circuit_breaker.error_threshold is not built yet; `consecutive` is what there is",
        )
    else:
        report.problem(written, "must be consecutive or error_rate")


def _take(tree: dict[str, Tree], dotted: str) -> tuple[bool, Tree]:
    """Remove a key, and the mappings that it leaves empty."""
    name, _, rest = dotted.partition(".")
    if name not in tree:
        return False, None
    if not rest:
        return True, tree.pop(name)
    inner = tree[name]
    if not isinstance(inner, dict):
        return False, None
    found, value = _take(inner, rest)
    if found and not inner:
        del tree[name]
    return found, value


def _put(tree: dict[str, Tree], dotted: str, value: Tree) -> bool:
    """Add a key; False if it, or something else in the place of its group, is there."""
    name, _, rest = dotted.partition(".")
    if not rest:
        if name in tree:
            return False
        tree[name] = value
        return True
    inner = tree.setdefault(name, {})
    return isinstance(inner, dict) and _put(inner, rest, value)


def _scaled(value: Tree, per_second: int) -> Tree:
    if per_second == 1 or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value / per_second
