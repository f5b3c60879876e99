"""Facts as the engine tells them, for the tests of their consumers."""

from outlast.model.fault import FaultKind, Timer
from outlast.model.plan import Skipped, SkipReason
from outlast.model.records import (
    AttemptEnded,
    AttemptStarted,
    BreakerMoved,
    FailoverTriggered,
    Noted,
    Record,
    RequestEnded,
)
from outlast.model.usage import Usage

OWN_ID = "0" * 31 + "a"


def attempt(
    deployment: str = "a",
    kind: FaultKind | None = None,
    *,
    blamed: bool = True,
    detail: str = "",
    duration_s: float = 0.25,
    first_token_s: float | None = None,
) -> AttemptEnded:
    return AttemptEnded(
        request_id=OWN_ID,
        pool="fast",
        deployment=deployment,
        provider=f"p-{deployment}",
        kind=kind,
        status=None,
        timer=Timer.FIRST_TOKEN if kind is FaultKind.TIMEOUT else None,
        detail=detail,
        duration_s=duration_s,
        first_token_s=first_token_s,
        blamed=blamed and kind is not None,
    )


def rescued(model: str = "fast", request_id: str = OWN_ID, detail: str = "") -> RequestEnded:
    """`a` timed out, `c` rested, `b` answered."""
    return RequestEnded(
        request_id=request_id,
        dialect="openai",
        pool="fast",
        model=model,
        stream=True,
        outcome="ok",
        status=200,
        code=None,
        attempts=(
            attempt("a", FaultKind.TIMEOUT, duration_s=4.0124, detail=detail),
            attempt("b", first_token_s=0.1),
        ),
        skipped=(Skipped("c", SkipReason.RESTING),),  # type: ignore[arg-type]
        failovers=1,
        duration_s=4.5,
        first_token_s=4.1,
        usage=Usage(input_tokens=12, output_tokens=34, cached_tokens=5),
        saved=True,
    )


def failed(outcome: str = "exhausted", status: int = 502) -> RequestEnded:
    return RequestEnded(
        request_id=OWN_ID,
        dialect="openai",
        pool="fast",
        model="fast",
        stream=False,
        outcome=outcome,
        status=status,
        code="all_routes_failed",
        attempts=(),
        skipped=(),
        failovers=0,
        duration_s=0.5,
        first_token_s=None,
        usage=None,
        saved=False,
    )


def moved(after: str = "open") -> BreakerMoved:
    return BreakerMoved("a", "p-a", "closed", after, 5)


FAILOVER = FailoverTriggered(OWN_ID, "fast", 1, "a", "p-a", 503, FaultKind.PROVIDER_5XX)
NOTED = Noted("candidate_skipped", OWN_ID, {"deployment": "c", "reason": "resting"})

EVERY_RECORD: tuple[Record, ...] = (
    AttemptStarted(OWN_ID, "fast", "a", "p-a"),
    attempt("a", FaultKind.TIMEOUT),
    attempt("b", first_token_s=0.1),
    FAILOVER,
    moved("open"),
    moved("half_open"),
    moved("closed"),
    rescued(),
    failed(),
    NOTED,
)
