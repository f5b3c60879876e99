"""Time as a number that is handed in.

The core never asks what time it is: `now` is an argument. An `Instant` is monotonic, so it can
be compared and subtracted, but says nothing about the calendar; wall time appears only where a
wire format needs it (`Retry-After` as an HTTP date) and is then an argument too.
"""

from typing import TypeAlias

Instant: TypeAlias = float
"""Seconds on the clock of the running event loop."""

WallTime: TypeAlias = float
"""Seconds since 1970-01-01 UTC."""
