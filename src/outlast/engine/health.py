"""The live health of every deployment: breaker, rests, slots. The one owner of that state.

Reading is a few attribute look-ups and never waits. A cell belongs to (deployment, what it is
reached by), a credential's rest to the credential, so all deployments behind one key rest
together when the key is refused.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from outlast.model.clock import Instant
from outlast.model.fault import Blame, Effect, Fault, Verdict, judge
from outlast.model.health import Unavailable
from outlast.model.ids import CredentialId, DeploymentName
from outlast.model.plan import Candidate, SkipReason
from outlast.model.records import BreakerMoved, Record
from outlast.model.topology import Topology
from outlast.resilience.breaker import Breaker, Moved, Permit, State
from outlast.resilience.rests import Rest, rest_ordered


class Cell:
    """One deployment's health. `credential` is shared by every deployment behind that key."""

    __slots__ = ("breaker", "breaks", "credential", "inflight", "rest", "slots")

    def __init__(
        self, breaker: Breaker, credential: Rest, *, slots: int | None, breaks: bool
    ) -> None:
        self.breaker = breaker
        self.breaks = breaks  # False: circuit_breaker.enabled is off
        self.credential = credential
        self.rest = Rest()
        self.slots = slots
        self.inflight = 0

    def unavailable(self, now: Instant, *, ignoring_throttle: bool = False) -> Unavailable | None:
        """Why an attempt could not start now; None: it could. Changes nothing."""
        if now < self.credential.until or now < self.rest.until:
            resting = self.credential.unavailable(now) or self.rest.unavailable(now)
            throttled = resting is not None and resting.reason is SkipReason.THROTTLED
            if not (ignoring_throttle and throttled):
                return resting
        if self.breaks and self.breaker.state is not State.CLOSED:
            until = self.breaker.rests_until(now)
            if until is not None:
                return Unavailable(SkipReason.RESTING, until)
        if self.slots is not None and self.inflight >= self.slots:
            return Unavailable(SkipReason.AT_CAPACITY)
        return None


class Hold:
    """A slot and a permit, held by one attempt and given back exactly once by `end`."""

    __slots__ = ("_cell", "_permit")

    def __init__(self, cell: Cell, permit: Permit | None) -> None:
        self._cell: Cell | None = cell
        self._permit = permit

    def first_token(self, now: Instant) -> None:
        if self._permit is not None and self._cell is not None:
            self._cell.breaker.first_token(self._permit, now)

    def end(self, effect: Effect, now: Instant) -> None:
        """Give everything back. Later calls do nothing."""
        cell, self._cell = self._cell, None
        if cell is None:
            return
        cell.inflight -= 1
        if self._permit is not None:
            cell.breaker.settle(self._permit, effect, now)
        if effect is Effect.SUCCESS:
            cell.rest.end()
            cell.credential.end()


class DeploymentHealth(Struct, frozen=True):
    """One row of `/stats`. Rests are seconds from now, None: does not rest."""

    deployment: str
    provider: str
    state: str
    available: bool
    unavailable_reason: str | None
    rests_for_s: float | None
    consecutive_failures: int
    window_successes: int
    window_failures: int
    inflight: int
    max_concurrent: int | None


class HealthBook:
    """Every cell. `chance` is uniform in [0, 1); `tell` gets each change of a breaker."""

    def __init__(
        self, topology: Topology, chance: Callable[[], float], tell: Callable[[Record], None]
    ) -> None:
        self._topology = topology
        self._credentials: dict[CredentialId, Rest] = {}
        self._cells: dict[DeploymentName, Cell] = {}
        for deployment in topology.deployments.values():
            provider = topology.providers[deployment.provider]
            credential = self._credentials.setdefault(provider.credential.id, Rest())
            policy = deployment.policy.breaker
            moved = _teller(deployment.name, provider.name, tell)
            self._cells[deployment.name] = Cell(
                Breaker(policy, chance, moved),
                credential,
                slots=deployment.max_concurrent,
                breaks=policy.enabled,
            )

    def unavailable(
        self, candidate: Candidate, now: Instant, *, ignoring_throttle: bool = False
    ) -> Unavailable | None:
        cell = self._cells[candidate.deployment]
        return cell.unavailable(now, ignoring_throttle=ignoring_throttle)

    def take(
        self, candidate: Candidate, now: Instant, *, ignoring_throttle: bool = False
    ) -> Hold | Unavailable:
        """Take the slot, then the breaker's permit; or say why not, having taken nothing."""
        cell = self._cells[candidate.deployment]
        refusal = cell.unavailable(now, ignoring_throttle=ignoring_throttle)
        if refusal is not None:
            return refusal
        permit = None
        if cell.breaks:
            permit = cell.breaker.admit(now)
            assert permit is not None, "nothing came between the check and the permit"
        cell.inflight += 1
        return Hold(cell, permit)

    def settle(self, hold: Hold, candidate: Candidate, fault: Fault | None, now: Instant) -> bool:
        """Record an attempt's one outcome. Returns whether anybody is blamed for it."""
        if fault is None:
            hold.end(Effect.SUCCESS, now)
            return False
        verdict = judge(fault)
        hold.end(verdict.effect, now)
        self._order_rest(candidate, fault, verdict, now)
        return verdict.effect not in _BLAMELESS

    def states(self) -> Iterator[tuple[str, str, int]]:
        """(deployment, state word, attempts in flight) of every deployment."""
        for name, cell in self._cells.items():
            yield name, cell.breaker.state.value, cell.inflight

    def rows(self, now: Instant) -> list[DeploymentHealth]:
        return [self._row(name, cell, now) for name, cell in self._cells.items()]

    def state(self, deployment: DeploymentName) -> State:
        return self._cells[deployment].breaker.state

    def _row(self, name: DeploymentName, cell: Cell, now: Instant) -> DeploymentHealth:
        why = cell.unavailable(now)
        counts = cell.breaker.counts(now)
        until = None if why is None or why.until is None else max(0.0, why.until - now)
        return DeploymentHealth(
            deployment=name,
            provider=self._topology.deployments[name].provider,
            state=cell.breaker.state.value,
            available=why is None,
            unavailable_reason=None if why is None else why.reason.value,
            rests_for_s=None if until is None else round(until, 3),
            consecutive_failures=cell.breaker.streak,
            window_successes=counts.successes,
            window_failures=counts.failures,
            inflight=cell.inflight,
            max_concurrent=cell.slots,
        )

    def _order_rest(
        self, candidate: Candidate, fault: Fault, verdict: Verdict, now: Instant
    ) -> None:
        ordered = rest_ordered(fault, candidate.policy.rest)
        if ordered is None:
            return
        reason, seconds = ordered
        cell = self._cells[candidate.deployment]
        scope = cell.credential if verdict.blame is Blame.CREDENTIAL else cell.rest
        scope.order(reason, now + seconds)


_BLAMELESS = frozenset({Effect.NEUTRAL, Effect.SUCCESS})


def _teller(
    deployment: str, provider: str, tell: Callable[[Record], None]
) -> Callable[[Moved], None]:
    def moved(move: Moved) -> None:
        tell(
            BreakerMoved(
                deployment,
                provider,
                move.before.value,
                move.after.value,
                move.consecutive_failures,
            )
        )

    return moved
