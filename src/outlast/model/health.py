"""What the planner and the failover machine are told about a deployment's health."""

from msgspec import Struct

from outlast.model.clock import Instant
from outlast.model.plan import SkipReason


class Unavailable(Struct, frozen=True):
    """Why a deployment cannot be taken now, and when it may be again (None: unknown)."""

    reason: SkipReason
    until: Instant | None = None
