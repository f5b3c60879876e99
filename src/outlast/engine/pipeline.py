"""One request, from its bytes to its last byte, as one sentence.

The engine owns nothing but the live health; everything else belongs to the request. A failure
before commit is raised as a `GatewayError` (the server words it in the caller's dialect) or, when
it is the caller's own mistake, relayed as the provider sent it. After commit the answer ends
here, honestly.
"""

import asyncio
import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from outlast.engine.attempts import Attempt
from outlast.engine.call import Call
from outlast.engine.settle import final_error
from outlast.engine.streaming import relay
from outlast.engine.walk import Walk, World
from outlast.errors import GatewayError
from outlast.model.clock import Instant
from outlast.model.fault import Fault, FaultKind
from outlast.model.plan import Plan
from outlast.model.records import RequestEnded
from outlast.model.request import NeutralRequest
from outlast.ports import Headers, Responder
from outlast.protocols.dialect import Dialect
from outlast.resilience.failover import GiveUpReason
from outlast.routing.planner import plan as plan_request

CLIENT_GONE_STATUS = 499
"""What the log says when nobody was left to answer."""

UNRESOLVED = "unresolved"
"""Stands for model names that nothing answers to, in metrics and the log."""


class Routing(Struct, frozen=True):
    """The `routing` member of an answer: who gave it, and what that took."""

    strategy: str
    selected_provider: str
    selected_deployment: str
    failovers: int
    attempts: int


class Outcome(Struct, frozen=True):
    """How a request ended, for its record."""

    word: str
    status: int
    code: str | None = None


class Engine:
    """Answers calls. `world` is what new requests are admitted under."""

    def __init__(
        self,
        world: World,
        dialects: Mapping[str, Dialect],
        *,
        debug: bool,
    ) -> None:
        self.world = world
        self._dialects = dialects
        self._debug = debug

    def models(self) -> list[str]:
        """Names that a caller may ask for."""
        return self.world.snapshot.index.names()

    def plan(self, name: str) -> Plan:
        """The plan that a request for `name` would get now. Sends nothing.

        Raises:
            GatewayError: 404 `model_not_found`.
        """
        return plan_request(name, self.world.snapshot.index)

    async def answer(self, call: Call, responder: Responder) -> None:
        """Take one call from its bytes to its last byte.

        Raises:
            GatewayError: nothing was written; this is the answer.
        """
        world = self.world
        dialect = self._dialects[call.dialect]
        try:
            request = dialect.decode(call.body)
            plan = plan_request(call.target or request.model, world.snapshot.index)
        except GatewayError as error:
            world.observer.observe(_rejected(call, error))
            raise
        forward = dialect.forward
        travels = tuple([h for h in call.headers if h[0] in forward])
        walk = Walk(world, request, call.request_id, plan, travels)
        if self._debug:
            _note_plan(walk)
        responder.on_gone(walk.caller_left)
        outcome = Outcome("error", 500, "internal_error")
        winner: Attempt | None = None
        try:
            winner = await walk.run()
            if winner is None:
                outcome = await self._without_answer(walk, responder)
            elif winner.answer is not None:
                outcome = await self._whole(walk, winner, responder)
            else:
                outcome = await self._stream(walk, winner, dialect, responder)
        except GatewayError as error:
            outcome = _outcome_of(error)
            raise
        except asyncio.CancelledError:
            outcome = Outcome("client_gone", CLIENT_GONE_STATUS)
            raise
        finally:
            walk.close()
            world.observer.observe(_ended(call, request, walk, winner, outcome, world.clock.now()))

    async def _whole(self, walk: Walk, winner: Attempt, responder: Responder) -> Outcome:
        answer = winner.answer
        assert answer is not None
        walk.finish(None)
        body = answer.body
        if walk.plan.policy.routing == "body":
            body = winner.route.dialect.splice_routing(body, _routing(walk, winner))
        headers = _answer_headers(walk, winner)
        if answer.refused:
            headers.append((b"x-outlast-gateway-code", b"refusal"))
        await responder.whole(200, headers, body)
        if responder.gone:
            return Outcome("client_gone", CLIENT_GONE_STATUS)
        return Outcome("ok", 200, "refusal" if answer.refused else None)

    async def _stream(
        self, walk: Walk, winner: Attempt, dialect: Dialect, responder: Responder
    ) -> Outcome:
        reader = winner.reader
        assert reader is not None
        if walk.plan.policy.routing == "body":
            reader.routing = _routing(walk, winner)
        headers = _answer_headers(walk, winner)
        headers.append((b"cache-control", b"no-cache"))
        await responder.start(200, headers)
        fault = await relay(walk, winner, responder, self.world.clock)
        walk.finish(fault)
        if fault is None:
            await responder.end()
            if responder.gone:
                return Outcome("client_gone", CLIENT_GONE_STATUS)
            return Outcome("ok", 200, "refusal" if reader.refused else None)
        if fault.kind is FaultKind.CALLER_GONE:
            walk.note("caller_gone", phase="after_commit", blamed="none")
            return Outcome("client_gone", CLIENT_GONE_STATUS)
        error = _broken_stream(walk, winner, fault)
        await responder.write(dialect.in_band(error, reader, walk.request_id))
        await responder.end()
        return Outcome("stream_broken", 200, error.gateway_code)

    async def _without_answer(self, walk: Walk, responder: Responder) -> Outcome:
        gave_up = walk.gave_up
        assert gave_up is not None
        if gave_up.reason is GiveUpReason.CALLER_GONE:
            return Outcome("client_gone", CLIENT_GONE_STATUS)
        fault = gave_up.fault
        if gave_up.reason is GiveUpReason.FINAL and fault is not None:
            failed = walk.failed
            if failed is not None and fault.kind in _CALLERS_OWN and _relayable(failed):
                return await self._relay_error(walk, failed, fault, responder)
        raise final_error(walk.ending(), gave_up.reason, fault)

    async def _relay_error(
        self, walk: Walk, failed: Attempt, fault: Fault, responder: Responder
    ) -> Outcome:
        """The caller's own mistake, in the words (bytes) of the provider that found it."""
        assert failed.status is not None
        code = "refusal" if fault.kind is FaultKind.REFUSAL else "invalid_request"
        headers = _answer_headers(walk, failed)
        headers.append((b"x-outlast-gateway-code", code.encode()))
        headers.append((b"x-should-retry", b"false"))
        await responder.whole(failed.status, headers, failed.body)
        return Outcome("client_error", failed.status, code)


_CALLERS_OWN = frozenset({FaultKind.CALLER_ERROR, FaultKind.PARAM_REJECTED, FaultKind.REFUSAL})


_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def _relayable(failed: Attempt) -> bool:
    """Whether an error body may go out as it is: a 4xx, read whole, without our key in it.

    What cannot be searched for the key (another encoding than ours, no UTF-8) does not go out.
    """
    if failed.status is None or not 400 <= failed.status < 500 or failed.overlong:
        return False
    encodings = [v.strip().lower() for n, v in failed.headers if n == b"content-encoding"]
    if any(encoding not in {b"", b"identity"} for encoding in encodings):
        return False
    try:
        str(failed.body, "utf-8")
    except UnicodeDecodeError:
        return False
    return bool(failed.body) and not _quotes(failed.body, failed.route.secrets)


def _quotes(body: bytes, secrets: tuple[bytes, ...]) -> bool:
    """Whether a body holds one of our secrets, spelled plainly or with JSON's escapes."""
    texts = [body]
    if b"\\" in body:
        texts.append(_ESCAPE.sub(_unescaped, body))
    return any(secret in text for secret in secrets for text in texts)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """What an escape stands for. Letters, digits and slashes matter: keys have no more."""
    code, plain = escape.groups()
    return plain if code is None else chr(int(code, 16)).encode("utf-8", "replace")


def _note_plan(walk: Walk) -> None:
    plan = walk.plan
    found, left = len(plan.candidates) + len(plan.skipped), len(plan.candidates)
    walk.note("candidates_building", model=plan.asked, priority_order_count=found)
    for skipped in plan.skipped:
        walk.note(
            "candidate_skipped",
            deployment=skipped.deployment,
            model=plan.asked,
            reason=skipped.reason.value,
        )
    walk.note("model_resolved", model=plan.asked, candidates=left)


def _routing(walk: Walk, winner: Attempt) -> bytes:
    return msgspec.json.encode(
        Routing(
            walk.plan.strategy,
            winner.route.provider.display_name,
            winner.candidate.deployment,
            walk.machine.failovers,
            walk.machine.attempts,
        )
    )


def _answer_headers(walk: Walk, winner: Attempt) -> Headers:
    """Headers of an answer. Of the provider's own, only the content type travels."""
    content_type = next((v for n, v in winner.headers if n == b"content-type"), None)
    if content_type is None:
        content_type = b"application/json" if winner.reader is None else b"text/event-stream"
    headers = [(b"content-type", content_type)]
    if walk.plan.policy.routing != "off":
        headers += [
            *winner.route.answer_headers,
            (b"x-outlast-pool", walk.plan.asked.encode("ascii", "backslashreplace")),
            (b"x-outlast-failovers", b"%d" % walk.machine.failovers),
            (b"x-outlast-attempts", b"%d" % walk.machine.attempts),
        ]
    if winner.route.provider.simulated:
        headers.append((b"x-outlast-degraded", b"simulated"))
    return headers


def _broken_stream(walk: Walk, winner: Attempt, fault: Fault) -> GatewayError:
    stalled = fault.timer is not None
    what = "stopped sending" if stalled else "broke off"
    return GatewayError(
        502,
        "stream_broken",
        f"The answer is incomplete: {winner.route.provider.display_name} {what} midway.",
        error_type="provider_unavailable",
        retryable=True,
        normalized_code="timeout" if stalled else "provider_unavailable",
        failovers=walk.machine.failovers,
    )


def _outcome_of(error: GatewayError) -> Outcome:
    walked = {429, 502, 503, 504}
    if error.status in walked:
        word = "exhausted"
    else:
        word = "client_error" if error.status < 500 else "error"
    return Outcome(word, error.status, error.gateway_code)


def _rejected(call: Call, error: GatewayError) -> RequestEnded:
    """The record of a request that never had a plan."""
    return RequestEnded(
        request_id=call.request_id,
        dialect=call.dialect,
        pool=UNRESOLVED,
        model=UNRESOLVED,
        stream=False,
        outcome="client_error",
        status=error.status,
        code=error.gateway_code,
        attempts=(),
        skipped=(),
        failovers=0,
        duration_s=0.0,
        first_token_s=None,
        usage=None,
        saved=False,
    )


def _ended(
    call: Call,
    request: NeutralRequest,
    walk: Walk,
    winner: Attempt | None,
    outcome: Outcome,
    now: Instant,
) -> RequestEnded:
    usage = None
    first = None
    if winner is not None:
        first = winner.first_token_at
        usage = winner.answer.usage if winner.answer is not None else None
        if winner.reader is not None:
            usage = winner.reader.usage
    failovers = walk.machine.failovers
    return RequestEnded(
        request_id=call.request_id,
        dialect=call.dialect,
        pool=walk.plan.label,
        model=walk.plan.asked,
        stream=request.stream,
        outcome=outcome.word,
        status=outcome.status,
        code=outcome.code,
        attempts=tuple(walk.ended),
        skipped=walk.plan.skipped + tuple(s for s, _ in walk.refusals),
        failovers=failovers,
        duration_s=now - walk.started,
        first_token_s=None if first is None else first - walk.started,
        usage=usage,
        saved=outcome.word == "ok" and failovers > 0,
    )
