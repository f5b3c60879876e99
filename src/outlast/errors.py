"""Every error that is raised on purpose.

A `GatewayError` is one final answer in neutral words; `server/errors.py` renders it in the
caller's dialect. Expected provider failures are no exceptions: they are `model.fault.Fault`.
"""

from msgspec import Struct

from outlast.model.clock import WallTime
from outlast.model.plan import Skipped


class ConfigProblem(Struct, frozen=True):
    """One thing wrong with a configuration. `path` is dotted: `pools.fast.members[2].weight`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(Exception):
    """A configuration that cannot be used, with everything that is wrong with it."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class StartError(Exception):
    """The process cannot start for a reason outside the configuration (a taken port)."""


class AttemptSummary(Struct, frozen=True):
    """One attempt as the final body names it. `code` is a normalised code."""

    provider: str
    deployment: str
    status: int | None
    code: str


class GatewayError(Exception):
    """A final answer that is an error.

    `status` HTTP status · `gateway_code`, `error_type` and `normalized_code` the words of
    `docs/reference/errors.md` · `retry_after_s` seconds, rounded up and >= 1 on the wire, None:
    no header · `retry_at` the instant of a recovery that is further off than a Retry-After may
    say · `param` the member of the request at fault. Messages are ours and quote nothing of
    a provider's 401, 402, 403, 429 or 5xx.
    """

    def __init__(
        self,
        status: int,
        gateway_code: str,
        message: str,
        *,
        error_type: str,
        retryable: bool = False,
        normalized_code: str | None = None,
        retry_after_s: float | None = None,
        retry_at: WallTime | None = None,
        param: str | None = None,
        attempts: tuple[AttemptSummary, ...] = (),
        skipped: tuple[Skipped, ...] = (),
        failovers: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.gateway_code = gateway_code
        self.message = message
        self.error_type = error_type
        self.retryable = retryable
        self.normalized_code = normalized_code
        self.retry_after_s = retry_after_s
        self.retry_at = retry_at
        self.param = param
        self.attempts = attempts
        self.skipped = skipped
        self.failovers = failovers


def invalid_request(message: str, *, param: str | None = None) -> GatewayError:
    """A body that cannot be read."""
    return GatewayError(
        400,
        "invalid_request",
        message,
        error_type="invalid_request",
        normalized_code="invalid_request",
        param=param,
    )


def invalid_parameter(param: str, message: str) -> GatewayError:
    """A member of the body that cannot be honoured."""
    return GatewayError(
        400,
        "invalid_parameter",
        message,
        error_type="invalid_request",
        normalized_code="invalid_request",
        param=param,
    )


def model_not_found(model: str) -> GatewayError:
    """A name that nothing answers to."""
    return GatewayError(
        404,
        "model_not_found",
        f"No model, pool or deployment is called {model!r}. GET /v1/models lists the names.",
        error_type="not_found",
        normalized_code="model_not_found",
        param="model",
    )
