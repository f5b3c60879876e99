"""Prometheus metrics: counts what the engine tells, reads gauges when they are scraped.

Owns its registry: nothing is process-wide, two instances in one process do not meet. Labels come
from the configuration and from our own words, never from a request.

Surprising cases:
- Series of pools and deployments exist with zeros from the start, so that a rate over a fresh
  process is right; series with a further label (kind, reason, outcome) appear at first use,
  because all their combinations would fill a scrape with zeros.
- Children are looked up once and kept: `labels()` costs several times what counting does.
- The library's `_created` series are left out of the page; they double it and say nothing that a
  restart does not.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from outlast.model.records import (
    AttemptEnded,
    AttemptStarted,
    BreakerMoved,
    FailoverTriggered,
    Noted,
    Record,
    RequestEnded,
)

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

Health = Callable[[], Iterable[tuple[str, str, int]]]
"""() -> (deployment, state word, attempts in flight) of every deployment."""

STATE_NUMBERS = {"closed": 0, "half_open": 1, "open": 2}

_REQUEST_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 240)
_TTFT_BUCKETS_S = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60)

_Kind = TypeVar("_Kind", Counter, Histogram)


class _Family(Generic[_Kind]):
    """One family with its children kept by their label values."""

    __slots__ = ("_children", "_parent")

    def __init__(self, parent: _Kind) -> None:
        self._parent: _Kind = parent
        self._children: dict[tuple[str, ...], _Kind] = {}

    def of(self, *labels: str) -> _Kind:
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = self._parent.labels(*labels)
        return child


class _Gauges(Collector):
    """What is read at the scrape: health, and lines the log lost."""

    def __init__(self, health: Health, lines_dropped: Callable[[], int]) -> None:
        self._health = health
        self._lines_dropped = lines_dropped

    def collect(self) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "outlast_deployment_state",
            "State of a deployment's breaker: 0 closed, 1 half-open, 2 open",
            labels=["deployment"],
        )
        inflight = GaugeMetricFamily(
            "outlast_deployment_inflight",
            "Attempts under way at a deployment",
            labels=["deployment"],
        )
        for deployment, word, attempts in self._health():
            state.add_metric([deployment], STATE_NUMBERS[word])
            inflight.add_metric([deployment], attempts)
        dropped = CounterMetricFamily(
            "outlast_events_dropped",
            "Facts that a sink could not take, such as log lines for a broken pipe",
            labels=["sink"],
        )
        dropped.add_metric(["log"], self._lines_dropped())
        yield from (state, inflight, dropped)


class _Page(Collector):
    """A registry without the library's `_created` samples."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric


class Metrics:
    """An Observer that counts, and the page that Prometheus reads."""

    def __init__(
        self,
        version: str,
        health: Health,
        *,
        pools: Sequence[str] = (),
        deployments: Sequence[str] = (),
        lines_dropped: Callable[[], int] = lambda: 0,
    ) -> None:
        self._registry = registry = CollectorRegistry()
        self._page = _Page(registry)
        self._requests = _counter(
            registry, "requests", "Requests by how they ended", "dialect", "pool", "outcome"
        )
        self._saved = _counter(
            registry, "requests_saved", "Requests answered only because of failover", "pool"
        )
        self._attempts = _counter(
            registry,
            "upstream_attempts",
            "Attempts by how they ended: ok, failed, neutral (nobody's fault or the caller's)",
            *("pool", "deployment", "outcome"),
        )
        self._failures = _counter(
            registry,
            "upstream_failures",
            "Attempts that brought no answer, by what went wrong",
            *("pool", "deployment", "kind"),
        )
        self._failovers = _counter(
            registry, "failovers", "Moves to another candidate, by cause", "pool", "reason"
        )
        self._transitions = _counter(
            registry,
            "breaker_transitions",
            "Changes of a breaker's state",
            *("provider", "deployment", "to"),
        )
        self._request_seconds = _histogram(
            registry,
            "request_seconds",
            "From the first byte read to the last byte written",
            _REQUEST_BUCKETS_S,
            *("pool", "stream"),
        )
        self._ttft = _histogram(
            registry,
            "ttft_seconds",
            "From dispatch to the first semantic event, or to the whole answer",
            _TTFT_BUCKETS_S,
            "deployment",
        )
        registry.register(_Gauges(health, lines_dropped))
        build = Info("outlast_build", "What runs here", registry=registry)
        build.info({"version": version, "python": platform.python_version()})
        self._register_zeros(pools, deployments)

    def observe(self, record: Record) -> None:
        """Count a fact. Never raises, never waits."""
        match record:
            case RequestEnded():
                self._requests.of(record.dialect, record.pool, record.outcome).inc()
                stream = "true" if record.stream else "false"
                self._request_seconds.of(record.pool, stream).observe(record.duration_s)
                if record.saved:
                    self._saved.of(record.pool).inc()
            case AttemptEnded():
                self._attempt(record)
            case FailoverTriggered():
                self._failovers.of(record.pool, record.reason.value).inc()
            case BreakerMoved():
                self._transitions.of(record.provider, record.deployment, record.after).inc()
            case AttemptStarted() | Noted():
                pass  # an attempt is counted once, at its end

    def render(self) -> bytes:
        """The page, in Prometheus' text format."""
        return generate_latest(self._page)

    def _register_zeros(self, pools: Sequence[str], deployments: Sequence[str]) -> None:
        for pool in pools:
            self._saved.of(pool)
            for stream in ("false", "true"):
                self._request_seconds.of(pool, stream)
        for deployment in deployments:
            self._ttft.of(deployment)

    def _attempt(self, record: AttemptEnded) -> None:
        if record.kind is None:
            outcome = "ok"
        else:
            outcome = "failed" if record.blamed else "neutral"
            self._failures.of(record.pool, record.deployment, record.kind.value).inc()
        self._attempts.of(record.pool, record.deployment, outcome).inc()
        if record.first_token_s is not None:
            self._ttft.of(record.deployment).observe(record.first_token_s)


def _counter(
    registry: CollectorRegistry, name: str, meaning: str, *labels: str
) -> _Family[Counter]:
    return _Family(Counter(f"outlast_{name}", meaning, labels, registry=registry))


def _histogram(
    registry: CollectorRegistry,
    name: str,
    meaning: str,
    buckets_s: tuple[float, ...],
    *labels: str,
) -> _Family[Histogram]:
    histogram = Histogram(f"outlast_{name}", meaning, labels, registry=registry, buckets=buckets_s)
    return _Family(histogram)
