"""Profiles of Hypothesis, and a heap at rest.

`ci` is the same on every run, `fuzz` looks further each time; `HYPOTHESIS_PROFILE=fuzz` chooses.
Deadlines are off because a shared machine is no clock.

Thousands of collected tests make a full garbage collection take 200 ms, in which no event loop of
this process turns. What was collected is therefore frozen once, as the product freezes what its
start allocated, so that tests of the loop's promptness measure the product.
"""

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fuzz", deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_finish() -> None:
    """Take everything that exists by now out of the collector's sight."""
    gc.collect()
    gc.freeze()
