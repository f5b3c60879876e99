"""What Prometheus reads."""

from prometheus_client.parser import text_string_to_metric_families
from tests.unit.telemetry.records import EVERY_RECORD, FAILOVER, attempt, failed, moved, rescued

from outlast.model.fault import FaultKind
from outlast.telemetry.metrics import CONTENT_TYPE, Metrics


class Probe:
    """Metrics whose page is read back."""

    def __init__(self, **options) -> None:
        self.health = [("a", "closed", 0), ("b", "half_open", 2), ("c", "open", 0)]
        options.setdefault("pools", ["fast"])
        options.setdefault("deployments", ["a", "b", "c"])
        self.metrics = Metrics("1.2.3", lambda: self.health, **options)

    def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        page = self.metrics.render().decode()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((f"outlast_{name}", tuple(sorted(labels.items()))))


def test_a_fresh_process_shows_zeros_for_pools_and_deployments():
    probe = Probe()
    assert probe.value("requests_saved_total", pool="fast") == 0
    assert probe.value("request_seconds_count", pool="fast", stream="true") == 0
    assert probe.value("request_seconds_count", pool="fast", stream="false") == 0
    assert probe.value("ttft_seconds_count", deployment="c") == 0
    assert probe.value("deployment_inflight", deployment="a") == 0
    assert probe.value("events_dropped_total", sink="log") == 0


def test_series_with_other_labels_appear_at_first_use():
    probe = Probe()
    assert not any("kind" in dict(labels) for _, labels in probe.samples())
    probe.metrics.observe(attempt("a", FaultKind.TIMEOUT))
    labels = {"pool": "fast", "deployment": "a"}
    assert probe.value("upstream_failures_total", **labels, kind="timeout") == 1


def test_a_request_is_counted_by_how_it_ended():
    probe = Probe()
    probe.metrics.observe(rescued())
    probe.metrics.observe(failed())
    labels = {"dialect": "openai", "pool": "fast"}
    assert probe.value("requests_total", **labels, outcome="ok") == 1
    assert probe.value("requests_total", **labels, outcome="exhausted") == 1
    assert probe.value("requests_saved_total", pool="fast") == 1
    assert probe.value("request_seconds_sum", pool="fast", stream="true") == 4.5
    assert probe.value("request_seconds_sum", pool="fast", stream="false") == 0.5


def test_an_attempt_is_counted_once_by_whose_fault_it_was():
    probe = Probe()
    probe.metrics.observe(attempt("a", FaultKind.PROVIDER_5XX))
    probe.metrics.observe(attempt("a", FaultKind.CALLER_ERROR, blamed=False))
    probe.metrics.observe(attempt("a", first_token_s=0.2))
    labels = {"pool": "fast", "deployment": "a"}
    assert probe.value("upstream_attempts_total", **labels, outcome="failed") == 1
    assert probe.value("upstream_attempts_total", **labels, outcome="neutral") == 1
    assert probe.value("upstream_attempts_total", **labels, outcome="ok") == 1
    assert probe.value("upstream_failures_total", **labels, kind="caller_error") == 1
    assert probe.value("ttft_seconds_sum", deployment="a") == 0.2


def test_failovers_and_transitions_are_counted():
    probe = Probe()
    probe.metrics.observe(FAILOVER)
    probe.metrics.observe(moved("open"))
    assert probe.value("failovers_total", pool="fast", reason="provider_5xx") == 1
    labels = {"provider": "p-a", "deployment": "a", "to": "open"}
    assert probe.value("breaker_transitions_total", **labels) == 1


def test_gauges_are_read_at_the_scrape():
    probe = Probe()
    states = [probe.value("deployment_state", deployment=name) for name in "abc"]
    assert states == [0, 1, 2]
    probe.health = [("a", "open", 7)]
    assert probe.value("deployment_state", deployment="a") == 2
    assert probe.value("deployment_inflight", deployment="a") == 7
    assert probe.value("deployment_state", deployment="b") is None


def test_lost_log_lines_show():
    probe = Probe(lines_dropped=lambda: 4)
    assert probe.value("events_dropped_total", sink="log") == 4


def test_the_build_is_named():
    page = Probe().metrics.render().decode()
    assert 'outlast_build_info{python="3.' in page
    assert 'version="1.2.3"' in page


def test_the_page_holds_no_creation_times():
    probe = Probe()
    for record in EVERY_RECORD:
        probe.metrics.observe(record)
    assert b"_created" not in probe.metrics.render()


def test_two_instances_do_not_meet():
    one, other = Probe(), Probe()
    one.metrics.observe(rescued())
    assert other.value("requests_saved_total", pool="fast") == 0


def test_it_has_a_content_type():
    assert CONTENT_TYPE.startswith(b"text/plain; version=0.0.4")
