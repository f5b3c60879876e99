"""Prometheus metrics: counts what the engine tells, spells the page when it is scraped.

Nothing is process-wide: two instances in one process do not meet. Labels come from the
configuration and from our own words, never from a request. The library spells the page; the
counting is our own, because it is on every request's path: no locks (facts and scrapes come from
one thread, the event loop's), one lookup and one addition per series.

Surprising case: series of pools and deployments exist with zeros from the start, so that a rate
over a fresh process is right; series with a further label (kind, reason, outcome) appear at first
use, because all their combinations would fill a scrape with zeros.
"""

import platform
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from outlast.model.records import (
    AttemptEnded,
    BreakerMoved,
    FailoverTriggered,
    Record,
    RequestEnded,
)
from outlast.telemetry.fanout import Consuming

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

Health = Callable[[], Iterable[tuple[str, str, int]]]
"""() -> (deployment, state word, attempts in flight) of every deployment."""

STATE_NUMBERS = {"closed": 0, "half_open": 1, "open": 2}

_REQUEST_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0)
_TTFT_BUCKETS_S = (
    *(0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5),
    *(10.0, 20.0, 30.0, 60.0),
)

_Labels = tuple[str, ...]


class _Counters(defaultdict[_Labels, int]):
    """One family of counters, by their label values."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__(int)
        self._name = f"outlast_{name}"
        self._meaning = meaning
        self._labels = labels

    def family(self) -> Metric:
        family = CounterMetricFamily(self._name, self._meaning, labels=self._labels)
        for values, count in self.items():
            family.add_metric(values, count)
        return family


class _Histogram:
    """One histogram. `buckets` counts values by the first bound (seconds) not below them."""

    __slots__ = ("_bounds_s", "buckets", "sum_s")

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = bounds_s
        self.buckets = [0] * (len(bounds_s) + 1)  # the last one has no bound
        self.sum_s = 0.0

    def observe(self, value_s: float) -> None:
        self.buckets[bisect_left(self._bounds_s, value_s)] += 1
        self.sum_s += value_s


class _Histograms(dict[_Labels, _Histogram]):
    """One family of histograms, by their label values."""

    def __init__(self, name: str, meaning: str, bounds_s: tuple[float, ...], *labels: str) -> None:
        super().__init__()
        self._name = f"outlast_{name}"
        self._meaning = meaning
        self._bounds_s = bounds_s
        self._labels = labels

    def __missing__(self, values: _Labels) -> _Histogram:
        histogram = self[values] = _Histogram(self._bounds_s)
        return histogram

    def family(self) -> Metric:
        family = HistogramMetricFamily(self._name, self._meaning, labels=self._labels)
        bounds = [*map(str, self._bounds_s), "+Inf"]
        for values, histogram in self.items():
            counts = accumulate(histogram.buckets)  # the page's buckets hold all below them
            family.add_metric(values, list(zip(bounds, counts, strict=True)), histogram.sum_s)
        return family


class Metrics(Collector):
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
        self._version = version
        self._health = health
        self._lines_dropped = lines_dropped
        self._requests = _Counters(
            "requests", "Requests by how they ended", "dialect", "pool", "outcome"
        )
        self._saved = _Counters(
            "requests_saved", "Requests answered only because of failover", "pool"
        )
        self._attempts = _Counters(
            "upstream_attempts",
            "Attempts by how they ended: ok, failed, neutral (nobody's fault or the caller's)",
            *("pool", "deployment", "outcome"),
        )
        self._failures = _Counters(
            "upstream_failures",
            "Attempts that brought no answer, by what went wrong",
            *("pool", "deployment", "kind"),
        )
        self._failovers = _Counters(
            "failovers", "Moves to another candidate, by cause", "pool", "reason"
        )
        self._transitions = _Counters(
            "breaker_transitions",
            "Changes of a breaker's state",
            *("provider", "deployment", "to"),
        )
        self._request_seconds = _Histograms(
            "request_seconds",
            "From the first byte read to the last byte written",
            _REQUEST_BUCKETS_S,
            *("pool", "stream"),
        )
        self._ttft = _Histograms(
            "ttft_seconds",
            "From dispatch to the first semantic event, or to the whole answer",
            _TTFT_BUCKETS_S,
            "deployment",
        )
        # A table, not a match: a fact that counts for nothing costs one lookup. (An attempt is
        # counted at its end, not at its start.)
        self.consuming: Consuming = {
            RequestEnded: self._request,
            AttemptEnded: self._attempt,
            FailoverTriggered: self._failover,
            BreakerMoved: self._transition,
        }
        self._register_zeros(pools, deployments)

    def observe(self, record: Record) -> None:
        """Count a fact. Never raises, never waits."""
        count = self.consuming.get(type(record))
        if count is not None:
            count(record)

    def render(self) -> bytes:
        """The page, in Prometheus' text format."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Every family, as the library asks for them."""
        yield self._requests.family()
        yield self._saved.family()
        yield self._attempts.family()
        yield self._failures.family()
        yield self._failovers.family()
        yield self._transitions.family()
        yield self._request_seconds.family()
        yield self._ttft.family()
        yield from self._gauges()
        build = {"version": self._version, "python": platform.python_version()}
        yield InfoMetricFamily("outlast_build", "What runs here", value=build)

    def _gauges(self) -> Iterator[Metric]:
        """What is read at the scrape: health, and lines the log lost."""
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

    def _register_zeros(self, pools: Sequence[str], deployments: Sequence[str]) -> None:
        """Make series by reading them: what is missing comes to be as zero."""
        for pool in pools:
            self._saved[(pool,)] += 0
            for stream in ("false", "true"):
                self._request_seconds[pool, stream]
        for deployment in deployments:
            self._ttft[(deployment,)]

    def _request(self, record: RequestEnded) -> None:
        self._requests[record.dialect, record.pool, record.outcome] += 1
        stream = "true" if record.stream else "false"
        self._request_seconds[record.pool, stream].observe(record.duration_s)
        if record.saved:
            self._saved[(record.pool,)] += 1

    def _attempt(self, record: AttemptEnded) -> None:
        if record.kind is None:
            outcome = "ok"
        else:
            outcome = "failed" if record.blamed else "neutral"
            self._failures[record.pool, record.deployment, record.kind.value] += 1
        self._attempts[record.pool, record.deployment, outcome] += 1
        if record.first_token_s is not None:
            self._ttft[(record.deployment,)].observe(record.first_token_s)

    def _failover(self, record: FailoverTriggered) -> None:
        self._failovers[record.pool, record.reason.value] += 1

    def _transition(self, record: BreakerMoved) -> None:
        self._transitions[record.provider, record.deployment, record.after] += 1
