"""Profiles of Hypothesis: `ci` is the same on every run, `fuzz` looks further each time.

`HYPOTHESIS_PROFILE=fuzz` chooses; deadlines are off because a shared machine is no clock.
"""

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
