"""Layers of settings: who said what, and which word counts.

Owns the order of layers by the way it is called (each `over` wins over what is below) and the
typed reading of the result into the policies that the engine obeys. Every value knows its layer.

Surprising cases: a `first_token` of any layer but the built-in one is a plain hard limit, so the
more patient limit of the last candidate gives way to it. `max_open_duration` below an
`open_duration` of another layer counts as that. `do_not_retry_on` takes kinds out of an inherited
`retry_on`.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from outlast.config.key import Key
from outlast.config.reading import Flat
from outlast.config.values import parse
from outlast.model.policy import (
    Backoff,
    BreakerPolicy,
    CandidatePolicy,
    Jitter,
    RequestPolicy,
    RestPolicy,
    RetryPolicy,
    RetryWhen,
    Timeouts,
)

BUILT_IN = "built-in"
FILE = "file"
ENVIRONMENT = "environment"


class Setting(Struct, frozen=True):
    """A value and the layer that gave it."""

    value: object
    layer: str


class Layered:
    """Settings by key path, read by type. A wrong type is a mistake in the table."""

    def __init__(self, settings: Mapping[str, Setting]) -> None:
        self.settings = settings

    def over(self, flat: Flat, layer: str, keys: Iterable[Key] | None = None) -> "Layered":
        """These settings with one more layer on top; `keys` limits what is taken from it."""
        wanted = flat if keys is None else {k.path: flat[k.path] for k in keys if k.path in flat}
        added = {path: Setting(value, layer) for path, value in wanted.items()}
        return Layered({**self.settings, **added})

    def only(self, keys: Iterable[Key]) -> "Layered":
        """The settings of some keys."""
        return Layered({key.path: self.settings[key.path] for key in keys})

    def layer(self, path: str) -> str:
        return self.settings[path].layer

    def value(self, path: str) -> object:
        return self.settings[path].value

    def number(self, path: str) -> float:
        """Seconds, or a plain number."""
        value = self.value(path)
        assert isinstance(value, int | float)
        return float(value)

    def number_or_none(self, path: str) -> float | None:
        return None if self.value(path) is None else self.number(path)

    def count(self, path: str) -> int:
        """A number of things, or bytes."""
        value = self.value(path)
        assert isinstance(value, int)
        return value

    def count_or_none(self, path: str) -> int | None:
        return None if self.value(path) is None else self.count(path)

    def flag(self, path: str) -> bool:
        value = self.value(path)
        assert isinstance(value, bool)
        return value

    def word(self, path: str) -> str:
        value = self.value(path)
        assert isinstance(value, str)
        return value

    def words(self, path: str) -> frozenset[str]:
        value = self.value(path)
        assert isinstance(value, tuple)
        return frozenset(value)


def built_in(keys: Iterable[Key]) -> Layered:
    """The defaults of the table."""
    return Layered({key.path: Setting(_default(key), BUILT_IN) for key in keys})


def _default(key: Key) -> object:
    default = key.default
    if default is None or isinstance(default, dict):
        return default
    assert isinstance(default, bool | int | float | str | list)
    return parse(key, default)


def candidate_policy(of: Layered) -> CandidatePolicy:
    """What the candidate keys of these settings amount to."""
    return CandidatePolicy(
        timeouts=_timeouts(of), retry=_retry(of), breaker=_breaker(of), rest=_rest(of)
    )


def _timeouts(of: Layered) -> Timeouts:
    first_token_s = of.number_or_none("timeouts.first_token")
    last_s = of.number_or_none("timeouts.first_token_bounds.last")
    if last_s is None or of.layer("timeouts.first_token") != BUILT_IN:
        last_s = first_token_s
    return Timeouts(
        connect_s=of.number("timeouts.connect"),
        response_headers_s=of.number_or_none("timeouts.response_headers"),
        first_token_s=first_token_s,
        first_token_last_s=last_s,
        request_s=of.number("timeouts.request"),
        idle_stream_s=of.number_or_none("timeouts.idle_stream"),
    )


def _retry(of: Layered) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=of.count("retry.max_attempts"),
        when=RetryWhen(of.word("retry.when")),
        backoff=_backoff(of, "retry"),
        retry_on=of.words("retry.retry_on") - of.words("retry.do_not_retry_on"),
        max_retry_after_s=of.number_or_none("retry.max_retry_after"),
    )


def _backoff(of: Layered, group: str) -> Backoff:
    return Backoff(
        base_delay_s=of.number(f"{group}.base_delay"),
        max_delay_s=of.number(f"{group}.max_delay"),
        jitter=Jitter(of.word(f"{group}.jitter")),
    )


def _breaker(of: Layered) -> BreakerPolicy:
    group = "circuit_breaker"
    open_duration_s = of.number(f"{group}.open_duration")
    return BreakerPolicy(
        enabled=of.flag(f"{group}.enabled"),
        consecutive_failures=of.count_or_none(f"{group}.consecutive_failures"),
        window_s=of.number(f"{group}.window"),
        open_duration_s=open_duration_s,
        open_multiplier=of.number(f"{group}.open_multiplier"),
        max_open_duration_s=max(of.number(f"{group}.max_open_duration"), open_duration_s),
        open_jitter=of.number_or_none(f"{group}.open_jitter") or 0.0,
        half_open_max_calls=of.count(f"{group}.half_open_max_calls"),
        successes_to_close=of.count(f"{group}.successes_to_close"),
    )


def _rest(of: Layered) -> RestPolicy:
    group = "circuit_breaker"
    return RestPolicy(
        throttle_s=of.number_or_none(f"{group}.rate_limit.throttle"),
        auth_s=of.number_or_none(f"{group}.hard_down.auth"),
        billing_s=of.number_or_none(f"{group}.hard_down.billing"),
        not_found_s=of.number_or_none(f"{group}.hard_down.not_found"),
        max_retry_after_s=of.number(f"{group}.max_retry_after_honored"),
    )


def request_policy(of: Layered) -> RequestPolicy:
    """What the request keys of these settings amount to."""
    hop_backoff = of.value("failover.backoff") is not None
    return RequestPolicy(
        deadline_s=of.number("failover.deadline"),
        max_failovers=of.count_or_none("failover.max_failovers"),
        max_total_attempts=of.count_or_none("retry.max_total_attempts"),
        hop_backoff=_backoff(of, "failover.backoff") if hop_backoff else None,
        on_rate_limit=of.flag("failover.on_rate_limit"),
        routing=of.word("response.routing"),
        answer_bytes_max=of.count("streaming.answer_max"),
    )
