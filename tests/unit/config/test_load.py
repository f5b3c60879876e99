"""Where a configuration comes from."""

import pytest

from outlast.config.environment import DISCOVERED_MAX
from outlast.config.load import load, with_discovered
from outlast.errors import ConfigError
from outlast.model.ids import ProviderName
from outlast.model.topology import Origin

FILE = """
providers: {local: {dialect: openai, base_url: "http://127.0.0.1:1/v1", api_key: {file: key.txt}}}
deployments: {m: {provider: local, upstream_model: m}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, name="outlast.yaml"):
    (folder / "key.txt").write_text("sk-from-file\n")
    path = folder / name
    path.write_text(FILE)
    return path


def test_a_file_in_the_working_directory_is_found(folder):
    write(folder)
    loaded = load(None, {"OPENAI_API_KEY": "sk-unused"})
    assert loaded.origin == "file"
    assert list(loaded.topology.providers) == ["local"]


def test_a_named_file_wins_and_its_secrets_are_beside_it(folder):
    (folder / "sub").mkdir()
    path = write(folder / "sub", "other.yaml")
    for loaded in (load(path, {}), load(None, {"OUTLAST_CONFIG": str(path)})):
        assert loaded.topology.providers[ProviderName("local")].credential.secret == "sk-from-file"
        assert loaded.topology.providers[ProviderName("local")].credential.id == "local#0"


def test_a_named_file_must_exist(folder):
    with pytest.raises(ConfigError, match=r"cannot read 'nowhere\.yaml': No such file"):
        load(None, {"OUTLAST_CONFIG": "nowhere.yaml"})


def test_an_openai_key_alone_is_enough(folder):
    loaded = load(None, {"OPENAI_API_KEY": "sk-0001"})
    assert (loaded.origin, loaded.discover) == ("environment", ("openai",))
    provider = loaded.topology.providers[ProviderName("openai")]
    assert provider.origin == Origin("https", "api.openai.com", 443)
    assert (provider.base_path, provider.credential.secret) == ("/v1", "sk-0001")
    assert not loaded.topology.deployments


def test_discovered_models_become_deployments(folder):
    topology = load(None, {"OPENAI_API_KEY": "sk-0001"}).topology
    ids = ["gpt-5", "gpt-5", "bad\nid", "", "x" * 500, "ft:a/b"]
    found = with_discovered(topology, ProviderName("openai"), ids).deployments
    assert {name: d.serves for name, d in found.items()} == {
        "openai/gpt-5": "gpt-5",
        "openai/ft:a/b": "ft:a/b",
    }


def test_discovery_is_bounded(folder):
    topology = load(None, {"OPENAI_API_KEY": "sk-0001"}).topology
    ids = (f"m{n}" for n in range(DISCOVERED_MAX + 10))
    found = with_discovered(topology, ProviderName("openai"), ids).deployments
    assert len(found) == DISCOVERED_MAX


def test_with_nothing_simulated_providers_run(folder):
    loaded = load(None, {})
    assert loaded.origin == "simulated"
    topology = loaded.topology
    assert all(
        p.simulated and p.origin.host.endswith(".invalid") for p in topology.providers.values()
    )
    assert len({p.origin.host for p in topology.providers.values()}) == 3
    served = [(d.provider, d.serves) for d in topology.deployments.values()]
    assert served == [
        ("sim-fast", "sim/fast"),
        ("sim-shaky", "sim/flaky"),
        ("sim-steady", "sim/flaky"),
    ]


def test_keys_that_make_no_provider_yet_are_named(folder):
    loaded = load(None, {"ANTHROPIC_API_KEY": "sk-ant-1", "GROQ_API_KEY": "gsk-1"})
    assert loaded.origin == "simulated"
    assert [w.split(":")[0] for w in loaded.warnings] == ["GROQ_API_KEY", "ANTHROPIC_API_KEY"]
    assert not any("sk-" in warning for warning in loaded.warnings)


def test_the_environment_moves_the_listener_and_the_log(folder):
    write(folder)
    loaded = load(None, {"OUTLAST_LISTEN": "[::1]:0", "DEBUG_LOG": "1"})
    assert (loaded.server.host, loaded.server.port) == ("::1", 0)
    assert loaded.telemetry.debug_log
    with pytest.raises(ConfigError, match=r"^OUTLAST_LISTEN: must be HOST:PORT"):
        load(None, {"OUTLAST_LISTEN": "x"})


def test_an_open_listener_beyond_loopback_needs_a_word(folder):
    for env in ({}, {"OPENAI_API_KEY": "sk-0001"}):
        with pytest.raises(ConfigError, match="--insecure"):
            load(None, {"OUTLAST_LISTEN": "0.0.0.0:80", **env})
    loaded = load(None, {"OUTLAST_LISTEN": "0.0.0.0:80"}, insecure=True)
    assert loaded.warnings[0].startswith("OUTLAST_LISTEN: open beyond loopback")


def test_a_link_to_a_file_that_is_gone_is_no_empty_folder(folder):
    (folder / "outlast.yaml").symlink_to("unmounted.yaml")
    with pytest.raises(ConfigError, match=r"cannot read 'outlast\.yaml': No such file"):
        load(None, {})


@pytest.mark.parametrize(
    ("word", "on"), [("true", True), ("1", True), ("FALSE", False), ("0", False)]
)
def test_the_debug_variable_has_four_words(folder, word, on):
    assert load(None, {"DEBUG_LOG": word}).telemetry.debug_log is on


@pytest.mark.parametrize("word", ["off", "maybe"])
def test_other_words_for_the_debug_variable_are_problems(folder, word):
    with pytest.raises(ConfigError, match="DEBUG_LOG: must be true or false"):
        load(None, {"DEBUG_LOG": word})


@pytest.mark.parametrize("text", [".Inf", ".NaN", "-.INF", ".inf"])
def test_a_duration_that_is_no_number_is_a_problem_in_every_spelling(folder, text):
    write(folder)
    (folder / "outlast.yaml").write_text(f"{FILE}timeouts: {{request: {text}}}\n")
    with pytest.raises(ConfigError, match=r"timeouts\.request"):
        load(None, {})


@pytest.mark.parametrize("text", ["!!float 0x1F", "!!float 0o37"])
def test_a_tagged_number_in_another_base_is_that_number(folder, text):
    write(folder)
    (folder / "outlast.yaml").write_text(f"{FILE}timeouts: {{request: {text}}}\n")
    (deployment,) = load(None, {}).topology.deployments.values()
    assert deployment.policy.timeouts.request_s == 31.0
