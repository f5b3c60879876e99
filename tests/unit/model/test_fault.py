"""The decision table, row by row: what each kind means."""

import pytest

from outlast.model.fault import Blame, Effect, Fault, FaultKind, Retry, judge

K = FaultKind
ROWS = [
    (Fault(K.CONNECTION_ERROR), Effect.FAILURE, Retry.YES, True, Blame.DEPLOYMENT),
    (Fault(K.TIMEOUT), Effect.FAILURE, Retry.IF_LAST, True, Blame.DEPLOYMENT),
    (Fault(K.TIMEOUT, status=408), Effect.FAILURE, Retry.YES, True, Blame.DEPLOYMENT),
    *(
        (Fault(K.PROVIDER_5XX, status=s), Effect.FAILURE, Retry.YES, True, Blame.DEPLOYMENT)
        for s in (500, 502, 503, 504, 520, 529, None)
    ),
    *(
        (Fault(K.PROVIDER_5XX, status=s), Effect.FAILURE, Retry.NEVER, True, Blame.DEPLOYMENT)
        for s in (501, 505, 507, 530, 599)
    ),
    (Fault(K.PROVIDER_RATE_LIMITED), Effect.THROTTLE, Retry.IF_LAST, True, Blame.DEPLOYMENT),
    (Fault(K.PROVIDER_BILLING), Effect.HARD_DOWN, Retry.NEVER, True, Blame.CREDENTIAL),
    (Fault(K.PROVIDER_AUTH), Effect.HARD_DOWN, Retry.NEVER, True, Blame.CREDENTIAL),
    (Fault(K.NOT_ENTITLED), Effect.HARD_DOWN, Retry.NEVER, True, Blame.DEPLOYMENT),
    (Fault(K.PROVIDER_NOT_FOUND), Effect.HARD_DOWN, Retry.NEVER, True, Blame.DEPLOYMENT),
    (Fault(K.CALLER_ERROR), Effect.NEUTRAL, Retry.NEVER, False, Blame.CALLER),
    (Fault(K.PARAM_REJECTED), Effect.NEUTRAL, Retry.NEVER, False, Blame.CALLER),
    (Fault(K.CONTEXT_LENGTH), Effect.NEUTRAL, Retry.NEVER, True, Blame.CALLER),
    (Fault(K.REQUEST_TOO_LARGE), Effect.NEUTRAL, Retry.NEVER, True, Blame.CALLER),
    (Fault(K.TRANSLATION_FAULT), Effect.NEUTRAL, Retry.ONCE, True, Blame.GATEWAY),
    (Fault(K.TRANSIENT_CONFLICT), Effect.FAILURE, Retry.ONCE, True, Blame.DEPLOYMENT),
    (Fault(K.REFUSAL), Effect.SUCCESS, Retry.NEVER, False, Blame.CALLER),
    (Fault(K.MALFORMED_RESPONSE), Effect.FAILURE, Retry.NEVER, True, Blame.DEPLOYMENT),
    (Fault(K.EMPTY_RESPONSE), Effect.NEUTRAL, Retry.NEVER, True, Blame.NOBODY),
    (Fault(K.STREAM_BROKEN), Effect.FAILURE, Retry.NEVER, False, Blame.DEPLOYMENT),
    (Fault(K.CALLER_GONE), Effect.NEUTRAL, Retry.NEVER, False, Blame.NOBODY),
    (Fault(K.DEADLINE), Effect.NEUTRAL, Retry.NEVER, False, Blame.NOBODY),
    (Fault(K.SUPERSEDED), Effect.NEUTRAL, Retry.NEVER, False, Blame.NOBODY),
    (Fault(K.OUTPUT_TOO_LARGE), Effect.NEUTRAL, Retry.NEVER, False, Blame.GATEWAY),
    (Fault(K.GATEWAY_FAULT), Effect.NEUTRAL, Retry.NEVER, False, Blame.GATEWAY),
]


@pytest.mark.parametrize(("fault", "effect", "retry", "hop", "blame"), ROWS, ids=str)
def test_row(fault, effect, retry, hop, blame):
    verdict = judge(fault)
    assert (verdict.effect, verdict.retry, verdict.hop, verdict.blame) == (
        effect,
        retry,
        hop,
        blame,
    )


def test_every_kind_has_a_row_here():
    assert {fault.kind for fault, *_ in ROWS} == set(FaultKind)
