"""Names: what each kind of name finds, and in which order."""

import pytest

from outlast.errors import GatewayError
from outlast.model.ids import CredentialId, DeploymentName, ModelName, PoolName, ProviderName
from outlast.model.plan import Skipped, SkipReason
from outlast.model.policy import CandidatePolicy, RequestPolicy
from outlast.model.topology import (
    Credential,
    Deployment,
    Member,
    Origin,
    Pool,
    Provider,
    Topology,
)
from outlast.routing.planner import plan
from outlast.routing.resolve import Index

POLICY = CandidatePolicy()


def provider(name: str, *, enabled: bool = True) -> Provider:
    return Provider(
        ProviderName(name),
        name.title(),
        name,
        "openai",
        Origin("https", name, 443),
        "/v1",
        Credential(CredentialId(f"{name}#0"), "k"),
        enabled=enabled,
    )


def deployment(name: str, at: str, upstream: str, serves: str, *, enabled: bool = True):
    return Deployment(
        DeploymentName(name),
        ProviderName(at),
        upstream,
        ModelName(serves),
        POLICY,
        enabled=enabled,
    )


PROVIDERS = [provider("one"), provider("two"), provider("off", enabled=False)]
DEPLOYMENTS = [
    deployment("a", "one", "gpt-5", "openai/gpt-5"),
    deployment("b", "two", "gpt-5-x", "openai/gpt-5"),
    deployment("c", "two", "deep/qwen", "qwen/Qwen3"),
    deployment("d", "off", "z", "z"),
    deployment("e", "one", "y", "y", enabled=False),
    deployment("f", "one", "other", "twin/leaf"),
    deployment("g", "two", "other", "twain/leaf"),
]
POOL = Pool(
    PoolName("fast"),
    tuple(
        Member(DeploymentName(n), POLICY, enabled=n != "f") for n in ("b", "a", "c", "d", "e", "f")
    ),
    RequestPolicy(deadline_s=7.0),
    exclusions=frozenset({DeploymentName("c")}),
)
TOPOLOGY = Topology(
    {p.name: p for p in PROVIDERS},
    {d.name: d for d in DEPLOYMENTS},
    {POOL.name: POOL},
    RequestPolicy(),
)
INDEX = Index(TOPOLOGY)


def candidates(name: str) -> list[str]:
    return [c.deployment for c in plan(name, INDEX).candidates]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fast", ["b", "a"]),
        ("openai/gpt-5", ["a", "b"]),
        ("gpt-5", ["a", "b"]),
        ("GPT-5", ["a", "b"]),
        ("one/gpt-5", ["a"]),
        ("two/deep/qwen", ["c"]),
        ("direct/two/gpt-5-x", ["b"]),
        ("c", ["c"]),
        ("qwen3", ["c"]),
        ("z", []),
    ],
)
def test_a_name_finds_its_candidates_in_listed_order(name, expected):
    assert candidates(name) == expected


@pytest.mark.parametrize("name", ["", "nope", "leaf", "FAST", "one/nope", "direct/one/nope"])
def test_an_unknown_or_ambiguous_name_is_404(name):
    with pytest.raises(GatewayError) as caught:
        plan(name, INDEX)
    assert (caught.value.status, caught.value.gateway_code) == (404, "model_not_found")


def test_a_pool_names_who_was_dropped_and_why_and_brings_its_policy():
    found = plan("fast", INDEX)
    assert found.label == "fast"
    assert found.policy.deadline_s == 7.0
    assert found.skipped == (
        Skipped(DeploymentName("c"), SkipReason.EXCLUDED),
        Skipped(DeploymentName("d"), SkipReason.DISABLED),
        Skipped(DeploymentName("e"), SkipReason.DISABLED),
        Skipped(DeploymentName("f"), SkipReason.DISABLED),
    )


def test_what_is_no_pool_shares_one_label():
    assert plan("openai/gpt-5", INDEX).label == plan("c", INDEX).label == "direct"


def test_names_to_offer_are_pools_models_and_deployments_once():
    assert INDEX.names() == [
        "fast",
        "openai/gpt-5",
        "qwen/Qwen3",
        "z",
        "y",
        "twin/leaf",
        "twain/leaf",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "g",
    ]
