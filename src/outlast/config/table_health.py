"""Rows of the table: when a deployment rests and how it comes back (`circuit_breaker`).

Owns names, defaults, bounds and meanings of these keys; `table` puts the rows together.
"""

from outlast.config.key import Key, Kind, Scope

CANDIDATE = Scope.CANDIDATE


def _later(name: str, kind: Kind, meaning: str, *off: object) -> Key:
    """A key that is off until it is built."""
    return Key(
        f"circuit_breaker.{name}", kind, None, CANDIDATE, meaning, built=False, only=(None, *off)
    )


def _rest(name: str, default: str, meaning: str) -> Key:
    return Key(
        f"circuit_breaker.hard_down.{name}",
        Kind.DURATION,
        default,
        CANDIDATE,
        f"{meaning} `0s` or `null`: none.",
        null=True,
        zero_off=True,
        at_least=0,
    )


BREAKER = (
    Key(
        "circuit_breaker.enabled",
        Kind.BOOL,
        True,
        CANDIDATE,
        "`false` stops the breaker; throttles and hard-downs have their own switches.",
    ),
    Key(
        "circuit_breaker.scope",
        Kind.WORD,
        "deployment",
        CANDIDATE,
        "What a breaker stands for.",
        words=("deployment", "provider", "member"),
        only=("deployment",),
    ),
    Key(
        "circuit_breaker.consecutive_failures",
        Kind.INT,
        5,
        CANDIDATE,
        "Failures in a row that open the breaker. `null`: never.",
        null=True,
        at_least=1,
        at_most=10000,
    ),
    Key(
        "circuit_breaker.window",
        Kind.DURATION,
        "30s",
        CANDIDATE,
        "How far back outcomes are counted.",
        above=0,
    ),
    _later("error_threshold", Kind.FLOAT, "Share of failures that opens the breaker."),
    _later("min_requests", Kind.INT, "Outcomes needed before a share means anything."),
    _later("low_traffic", Kind.GROUP, "A slower look at deployments with little traffic."),
    _later("low_traffic.min_requests", Kind.INT, "Outcomes needed."),
    _later("low_traffic.window", Kind.DURATION, "How far back."),
    _later("low_traffic.error_threshold", Kind.FLOAT, "Share of failures."),
    _later("slow_calls", Kind.GROUP, "Opens on brown-outs."),
    _later("slow_calls.of_last", Kind.INT, "Calls looked at."),
    _later("slow_calls.slow", Kind.INT, "Slow ones among them."),
    _later("broken_streams", Kind.GROUP, "Opens on streams that start well and break."),
    _later("broken_streams.of_last", Kind.INT, "Streams looked at."),
    _later("broken_streams.broken", Kind.INT, "Broken ones among them."),
    _later("connect_failures", Kind.INT, "Failed connects in a row that open the breaker."),
    _later("roll_up", Kind.BOOL, "Rest the provider when several deployments fail.", False),
    _later("slow_start", Kind.DURATION, "A rising share after closing.", 0.0),
    _later("honor_retry_after", Kind.BOOL, "Retry-After as a floor for the cooldown.", False),
    Key(
        "circuit_breaker.open_duration",
        Kind.DURATION,
        "15s",
        CANDIDATE,
        "First cooldown.",
        above=0,
    ),
    Key(
        "circuit_breaker.open_multiplier",
        Kind.FLOAT,
        1.5,
        CANDIDATE,
        "Growth of the cooldown with every probe that fails. 1.0: fixed.",
        at_least=1,
        at_most=100,
    ),
    Key(
        "circuit_breaker.max_open_duration",
        Kind.DURATION,
        "30s",
        CANDIDATE,
        "Longest cooldown. Below an `open_duration` of another layer it counts as that.",
        above=0,
    ),
    Key(
        "circuit_breaker.open_jitter",
        Kind.FLOAT,
        0.1,
        CANDIDATE,
        "Spread of the cooldown, as a share of it, both ways.",
        null=True,
        zero_off=True,
        at_least=0,
        at_most=1,
    ),
    Key(
        "circuit_breaker.half_open_max_calls",
        Kind.INT,
        1,
        CANDIDATE,
        "Probes in flight.",
        at_least=1,
        at_most=1000,
    ),
    Key(
        "circuit_breaker.successes_to_close",
        Kind.INT,
        1,
        CANDIDATE,
        "Probes that must succeed.",
        at_least=1,
        at_most=1000,
    ),
    Key(
        "circuit_breaker.max_retry_after_honored",
        Kind.DURATION,
        "24h",
        CANDIDATE,
        "Longest rest that a provider's Retry-After may order.",
        above=0,
    ),
    Key(
        "circuit_breaker.rate_limit.counts_as_failure",
        Kind.BOOL,
        False,
        CANDIDATE,
        "Does a 429 count as a failure?",
        only=(False,),
    ),
    Key(
        "circuit_breaker.rate_limit.throttle",
        Kind.DURATION,
        "30s",
        CANDIDATE,
        "Rest after a 429 that names no time. `null`: none.",
        null=True,
        above=0,
    ),
    _rest("auth", "30m", "Rest of a credential that was refused."),
    _rest("billing", "30m", "Rest of a credential that cannot pay."),
    _rest("not_found", "30s", "Rest of a model that is not there."),
    _later(
        "hard_down.not_entitled",
        Kind.DURATION,
        "Rest of a model that the credential may not use; until then `not_found` rules it.",
    ),
    Key(
        "circuit_breaker.client_error_outcome",
        Kind.WORD,
        "neutral",
        CANDIDATE,
        "What a caller's mistake means to the breaker.",
        words=("neutral", "success"),
        only=("neutral",),
    ),
)
