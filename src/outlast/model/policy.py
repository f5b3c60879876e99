"""Policy: how much patience, how many tries, when to rest. Durations are seconds.

Two halves, by what a key may depend on. `RequestPolicy` belongs to a whole request (it is chosen
once, at admission). `CandidatePolicy` belongs to one candidate, so providers, deployments and
pool members may each say something else. The defaults here are the `standard` ones.
"""

from enum import Enum

from msgspec import Struct


class RetryWhen(Enum):
    """When the same deployment is asked again."""

    LAST_CANDIDATE = "last_candidate"  # hop first while another usable candidate is left
    ALWAYS = "always"
    NEVER = "never"


class Jitter(Enum):
    """How a delay is spread: see `resilience.backoff`."""

    FULL = "full"
    ADDITIVE = "additive"
    NONE = "none"


class Backoff(Struct, frozen=True):
    """Delays that double from `base_delay_s` up to `max_delay_s`, then jittered."""

    base_delay_s: float = 0.2
    max_delay_s: float = 4.0
    jitter: Jitter = Jitter.FULL


class Timeouts(Struct, frozen=True):
    """Limits of one attempt, counted from its dispatch except `idle_stream_s`. None = off.

    `first_token_s` None: no probe, the first data event of any kind commits.
    `first_token_last_s` replaces `first_token_s` when no other candidate is left.
    `idle_stream_s` is the longest gap between events after the first token.
    """

    connect_s: float = 2.0
    response_headers_s: float | None = None
    first_token_s: float | None = 20.0
    first_token_last_s: float | None = 30.0
    request_s: float = 120.0
    idle_stream_s: float | None = 30.0


class RetryPolicy(Struct, frozen=True):
    """The same deployment again. `max_attempts` counts the first one.

    `retry_on` holds the fault kinds (by their words) that may be retried at all.
    `max_retry_after_s`: a longer Retry-After is obeyed by hopping, never by sleeping; None: the
    deadline alone bounds it.
    """

    max_attempts: int = 3
    when: RetryWhen = RetryWhen.LAST_CANDIDATE
    backoff: Backoff = Backoff()
    retry_on: frozenset[str] = frozenset(
        {"timeout", "provider_5xx", "connection_error", "provider_rate_limited"}
    )
    max_retry_after_s: float | None = 4.0


class BreakerPolicy(Struct, frozen=True):
    """When a deployment rests and how it comes back.

    Cooldown n (0, 1, 2 …) is `min(open_duration_s * open_multiplier ** n, max_open_duration_s)`,
    then spread by ± `open_jitter` (a share of it). `consecutive_failures` None: never trips.
    """

    enabled: bool = True
    consecutive_failures: int | None = 5
    window_s: float = 30.0
    open_duration_s: float = 15.0
    open_multiplier: float = 1.5
    max_open_duration_s: float = 30.0
    open_jitter: float = 0.1
    half_open_max_calls: int = 1
    successes_to_close: int = 1


class RestPolicy(Struct, frozen=True):
    """Rests that are no breaker state. None = that fault orders no rest.

    `throttle_s` is the rest after a 429 without a Retry-After; `max_retry_after_s` caps one with.
    """

    throttle_s: float | None = 30.0
    auth_s: float | None = 1800.0
    billing_s: float | None = 1800.0
    not_found_s: float | None = 30.0
    max_retry_after_s: float = 86400.0


class CandidatePolicy(Struct, frozen=True):
    """Everything that may differ from candidate to candidate."""

    timeouts: Timeouts = Timeouts()
    retry: RetryPolicy = RetryPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    rest: RestPolicy = RestPolicy()


class RequestPolicy(Struct, frozen=True):
    """Everything that belongs to the whole request.

    `deadline_s` bounds everything before commit. `max_failovers` is the number of candidates
    dispatched after the first (None: all). `max_total_attempts` None: candidates x max_attempts
    + 1. `hop_backoff` waits between candidates. `routing` is where the answer says who gave it:
    `body`, `header` or `off`. `answer_bytes_max` bounds a whole answer.
    """

    deadline_s: float = 240.0
    max_failovers: int | None = 3
    max_total_attempts: int | None = 8
    hop_backoff: Backoff | None = None
    on_rate_limit: bool = True
    routing: str = "body"
    answer_bytes_max: int = 32 * 1024 * 1024
