"""How long to wait before trying again.

Delay number n (1 for the first wait) is ``d = min(base_delay_s * 2 ** (n - 1), max_delay_s)``,
then spread: `full` draws from [0, d), `additive` adds [0, base_delay_s) after the cap, `none`
keeps d.
"""

from collections.abc import Callable
from typing import assert_never

from outlast.model.policy import Backoff, Jitter

_EXPONENT_MAX = 64


def delay_s(backoff: Backoff, number: int, chance: Callable[[], float]) -> float:
    """Delay before try `number` (>= 1), in seconds. `chance` is uniform in [0, 1)."""
    grown = backoff.base_delay_s * 2.0 ** min(number - 1, _EXPONENT_MAX)
    capped = min(grown, backoff.max_delay_s)
    jitter = backoff.jitter
    match jitter:
        case Jitter.FULL:
            return capped * chance()
        case Jitter.ADDITIVE:
            return capped + backoff.base_delay_s * chance()
        case Jitter.NONE:
            return capped
        case _:  # pragma: no cover - the type check proves that nothing is left
            assert_never(jitter)
