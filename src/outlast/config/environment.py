"""What exists without a file: providers from well-known variables, or simulated ones.

Owns which variables are known, and the two simulated models. Reads no environment itself: it is
handed in. A discovered model becomes a deployment called `provider/upstream_id`.

Surprising cases: only `OPENAI_API_KEY` makes a provider in this version; for the others there is
a warning that says what to write instead. Simulated providers live at hosts under `.invalid`,
which no resolver knows (RFC 6761 6.4), so that a wiring mistake can reach nobody.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from outlast.config.report import Report
from outlast.config.values import has_control
from outlast.model.ids import CredentialId, DeploymentName, ModelName, ProviderName
from outlast.model.policy import CandidatePolicy, RequestPolicy
from outlast.model.topology import Credential, Deployment, Origin, Provider, Topology

DISCOVERED_MAX = 2000
"""Models of one provider that become deployments."""
UPSTREAM_ID_LENGTH_MAX = 200

OPENAI = ProviderName("openai")
_SPEAKING_OPENAI = {
    "MISTRAL_API_KEY": "https://api.mistral.ai/v1",
    "DEEPSEEK_API_KEY": "https://api.deepseek.com/v1",
    "GROQ_API_KEY": "https://api.groq.com/openai/v1",
    "TOGETHER_API_KEY": "https://api.together.xyz/v1",
    "FIREWORKS_API_KEY": "https://api.fireworks.ai/inference/v1",
    "DEEPINFRA_API_KEY": "https://api.deepinfra.com/v1/openai",
    "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1",
    "XAI_API_KEY": "https://api.x.ai/v1",
    "OLLAMA_HOST": "http://127.0.0.1:11434/v1",
}
"""Variable -> base URL, as the vendors document it, for use in a file."""
_SPEAKING_OTHERS = {
    "ANTHROPIC_API_KEY": "anthropic",
    "GEMINI_API_KEY": "gemini",
    "COHERE_API_KEY": "cohere",
    "AWS_ACCESS_KEY_ID": "bedrock",
}


def warn_of_unused(env: Mapping[str, str], report: Report) -> None:
    """Say which known variables make no provider yet, and what to do about it."""
    for name, base_url in _SPEAKING_OPENAI.items():
        if env.get(name):
            report.warn(
                name,
                "a provider from this variable is not built yet; a file can name it: "
                f"dialect openai, base_url {base_url}",
            )
    for name, dialect in _SPEAKING_OTHERS.items():
        if env.get(name):
            report.warn(name, f"the dialect {dialect} is not built yet; this one speaks openai")


def openai_topology(secret: str, policy: RequestPolicy) -> Topology:
    """OpenAI alone, without deployments: its models are still to be listed."""
    provider = Provider(
        name=OPENAI,
        display_name="OpenAI",
        tag="openai",
        dialect="openai",
        origin=Origin("https", "api.openai.com", 443),
        base_path="/v1",
        credential=Credential(CredentialId("openai#0"), secret),
    )
    return Topology(providers={OPENAI: provider}, deployments={}, pools={}, policy=policy)


def with_discovered(
    topology: Topology,
    provider: ProviderName,
    upstream_ids: Iterable[str],
    policy: CandidatePolicy | None = None,
) -> Topology:
    """The topology with a deployment for each listed model, in the order of the listing.

    Ids that are empty, too long or hold control characters are left out, as is everything after
    the first `DISCOVERED_MAX`; deployments that exist stay as they are.
    """
    deployments = dict(topology.deployments)
    taken: set[str] = set()
    for upstream_id in upstream_ids:
        too_long = len(upstream_id) > UPSTREAM_ID_LENGTH_MAX
        if not upstream_id.strip() or too_long or has_control(upstream_id):
            continue
        if len(taken) == DISCOVERED_MAX:
            break
        taken.add(upstream_id)
        name = DeploymentName(f"{provider}/{upstream_id}")
        if name not in deployments:
            deployments[name] = _deployment(name, provider, upstream_id, upstream_id, policy)
    return structs.replace(topology, deployments=deployments)


def simulated_topology(policy: RequestPolicy) -> Topology:
    """`sim/fast` at one provider; `sim/flaky` at two, of which the first fails now and then."""
    names = [ProviderName(name) for name in ("sim-fast", "sim-shaky", "sim-steady")]
    fast, shaky, steady = names
    placed = ((fast, "sim/fast"), (shaky, "sim/flaky"), (steady, "sim/flaky"))
    deployments = [
        _deployment(DeploymentName(f"{name}/{model}"), name, model, model, None)
        for name, model in placed
    ]
    return Topology(
        providers={name: _simulated(name) for name in names},
        deployments={deployment.name: deployment for deployment in deployments},
        pools={},
        policy=policy,
    )


def _simulated(name: ProviderName) -> Provider:
    return Provider(
        name=name,
        display_name=f"Simulated {name}",
        tag=name,
        dialect="openai",
        origin=Origin("http", f"{name}.simulated.invalid", 80),
        base_path="/v1",
        credential=Credential(CredentialId(f"{name}#0"), None),
        simulated=True,
    )


def _deployment(
    name: DeploymentName,
    provider: ProviderName,
    upstream_model: str,
    serves: str,
    policy: CandidatePolicy | None,
) -> Deployment:
    return Deployment(
        name=name,
        provider=provider,
        upstream_model=upstream_model,
        serves=ModelName(serves),
        policy=policy or CandidatePolicy(),
    )
