"""Which layer's word counts, and what the words amount to."""

from pathlib import Path

import pytest

from outlast.config.effective import effective
from outlast.config.load import parse_config
from outlast.errors import ConfigError
from outlast.model.policy import Backoff, CandidatePolicy, Jitter

POOL = "pools: {p: {%s members: [{deployment: a%s}, {deployment: b}]}}\n"


def member(loaded, index=0):
    return loaded.topology.pools["p"].members[index].policy


def test_each_layer_wins_over_those_below(configured):
    steps = [
        ({}, "", "", "", 120),
        ({}, "timeouts: {request: 1s}\n", "", "", 1),
        ({"provider": ", timeouts: {request: 2s}"}, "timeouts: {request: 1s}\n", "", "", 2),
    ]
    for keys, top, pool, own, seconds in steps:
        loaded = configured(top + POOL % (pool, own), **keys)
        assert member(loaded).timeouts.request_s == seconds
    below = {
        "provider": ", timeouts: {request: 2s}",
        "deployment": ", timeouts: {request: 3s}",
    }
    assert member(configured(POOL % ("", ""), **below)).timeouts.request_s == 3
    in_pool = "timeouts: {request: 4s},"
    assert member(configured(POOL % (in_pool, ""), **below)).timeouts.request_s == 4
    loaded = configured(POOL % (in_pool, ", timeouts: {request: 5s}"), **below)
    assert member(loaded).timeouts.request_s == 5
    assert member(loaded, 1).timeouts.request_s == 4
    assert loaded.topology.deployments["a"].policy.timeouts.request_s == 3
    assert loaded.topology.deployments["b"].policy == CandidatePolicy()


def test_request_policy_is_the_pools_and_else_the_top_levels(configured):
    text = "failover: {deadline: 300s}\nretry: {max_total_attempts: null}\n"
    loaded = configured(text + POOL % ("failover: {max_failovers: 1},", ""))
    pool = loaded.topology.pools["p"].policy
    assert (pool.deadline_s, pool.max_failovers, pool.max_total_attempts) == (300, 1, None)
    assert loaded.topology.policy.max_failovers == 3


def test_an_explicit_first_token_is_a_hard_limit_for_the_last_candidate_too(configured):
    timeouts = member(configured("timeouts: {first_token: 9s}\n" + POOL % ("", ""))).timeouts
    assert (timeouts.first_token_s, timeouts.first_token_last_s) == (9, 9)


@pytest.mark.parametrize("off", ["0s", "null", "0"])
def test_no_first_token_means_no_probe(configured, off):
    timeouts = member(configured(f"timeouts: {{first_token: {off}}}\n" + POOL % ("", ""))).timeouts
    assert (timeouts.first_token_s, timeouts.first_token_last_s) == (None, None)


def test_the_last_candidates_patience_can_be_set_alone(configured):
    text = "timeouts: {first_token_bounds: {last: 45s}}\n"
    timeouts = member(configured(text + POOL % ("", ""))).timeouts
    assert (timeouts.first_token_s, timeouts.first_token_last_s) == (20, 45)


def test_a_cooldown_above_another_layers_greatest_counts(configured):
    breaker = member(
        configured(POOL % ("", ""), deployment=", circuit_breaker: {open_duration: 60s}")
    ).breaker
    assert (breaker.open_duration_s, breaker.max_open_duration_s) == (60, 60)


def test_a_hop_backoff_can_be_turned_off_by_a_pool(configured):
    text = "failover: {backoff: {base_delay: 50ms}}\n"
    loaded = configured(text + POOL % ("failover: {backoff: null},", ""))
    assert loaded.topology.policy.hop_backoff == Backoff(0.05, 2.0, Jitter.ADDITIVE)
    assert loaded.topology.pools["p"].policy.hop_backoff is None


def test_do_not_retry_on_takes_kinds_out(configured):
    retry = member(configured("retry: {do_not_retry_on: [timeout]}\n" + POOL % ("", ""))).retry
    assert retry.retry_on == {"provider_5xx", "connection_error", "provider_rate_limited"}


def test_effective_names_the_layer_of_every_value_of_a_pool(configured):
    loaded = configured(
        "retry: {base_delay: 100ms}\n"
        + POOL % ("timeouts: {connect: 1s},", ", retry: {when: never}")
    )
    rows = {row.path: (row.value, row.layer) for row in effective(loaded, "p")}
    assert rows["pools.p.members[0].retry.base_delay"] == ("100ms", "file")
    assert rows["pools.p.members[0].timeouts.connect"] == ("1s", "pool p")
    assert rows["pools.p.members[0].retry.when"] == ("never", "pool p member 0")
    assert rows["pools.p.members[1].retry.when"] == ("last_candidate", "built-in")
    assert rows["pools.p.failover.deadline"] == ("240s", "built-in")
    assert rows["pools.p.failover.exclusions"] == ("[]", "built-in")


def test_effective_masks_secrets(configured):
    text = "telemetry: {metrics_token: {env: TOKEN}}\n"
    loaded = configured(text, provider=", headers: {x-team: private}", env={"TOKEN": "t0ken"})
    rows = {row.path: row.value for row in effective(loaded)}
    assert rows["providers.openai.api_key"] == rows["telemetry.metrics_token"] == "****"
    assert rows["providers.openai.headers"] == "{x-team: ****}"
    shown = repr(rows) + repr(loaded)
    assert not any(secret in shown for secret in ("sk-0001", "t0ken", "private"))
    assert loaded.telemetry.metrics_token == "t0ken"
    assert dict(loaded.topology.providers["openai"].headers) == {b"x-team": b"private"}


def test_a_disabled_provider_counts_as_a_disabled_member(configured):
    with pytest.raises(ConfigError, match="every member is excluded or disabled"):
        configured("pools: {p: {members: [{deployment: a}]}}", provider=", enabled: false")


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ("", ["failover.backoff"]),
        (
            "failover: {backoff: {base_delay: 200ms}}\n",
            [f"failover.backoff.{name}" for name in ("base_delay", "max_delay", "jitter")],
        ),
    ],
    ids=["off", "on"],
)
def test_what_tunes_a_group_that_is_off_is_not_shown(settings, shown):
    text = settings + (
        "providers: {p: {dialect: openai, base_url: http://127.0.0.1:1/v1}}\n"
        "deployments: {d: {provider: p, upstream_model: m}}\n"
    )
    rows = effective(parse_config(text.encode(), {}, folder=Path()))
    assert [row.path for row in rows if row.path.startswith("failover.backoff")] == shown
