"""The order frozen for one request. Nothing re-sorts it later; health may only skip in it."""

from enum import Enum

from msgspec import Struct

from outlast.model.ids import CredentialId, DeploymentName, ProviderName
from outlast.model.policy import CandidatePolicy, RequestPolicy


class SkipReason(Enum):
    """Why a candidate was not taken. `explain`, the 503 body, log and metrics share the words."""

    DISABLED = "disabled"
    EXCLUDED = "excluded"
    RESTING = "resting"  # breaker open, or half-open with its probes out
    THROTTLED = "throttled"
    HARD_DOWN = "hard_down"
    AT_CAPACITY = "at_capacity"
    TRIED = "tried"


class Candidate(Struct, frozen=True):
    """A deployment's place in a plan."""

    deployment: DeploymentName
    provider: ProviderName
    credential: CredentialId
    policy: CandidatePolicy


class Skipped(Struct, frozen=True):
    """A deployment that was passed over, and why."""

    deployment: DeploymentName
    reason: SkipReason


class Plan(Struct, frozen=True):
    """One request's candidates in order, and what bounds the walk.

    `label` is the pool's name, or `direct` for canonical models and single deployments, so that
    metric labels come from the configuration alone. `asked` is the name that the caller used.
    """

    asked: str
    label: str
    strategy: str
    candidates: tuple[Candidate, ...]
    skipped: tuple[Skipped, ...]
    policy: RequestPolicy

    @property
    def attempts_max(self) -> int:
        """The greatest number of attempts that count (see `calls_max` for the wire)."""
        if self.policy.max_total_attempts is not None:
            return self.policy.max_total_attempts
        return sum(c.policy.retry.max_attempts for c in self.candidates) + 1

    @property
    def calls_max(self) -> int:
        """The greatest number of upstream calls: one stale replacement per attempt included."""
        return 2 * self.attempts_max
