"""Rows of the table: what a provider, a deployment, a pool and a member say about themselves.

Owns names, defaults, bounds and meanings of these keys; `table` adds the policy keys.
"""

from outlast.config.key import Key, Kind, Scope, inert
from outlast.config.table_file import later

FILE = Scope.FILE

PROVIDER = (
    Key(
        "dialect",
        Kind.WORD,
        None,
        FILE,
        "The protocol that it speaks. Required.",
        words=("openai", "responses", "anthropic", "gemini", "cohere", "bedrock"),
        only=("openai",),
    ),
    Key(
        "base_url",
        Kind.STRING,
        None,
        FILE,
        "What precedes the dialect's paths, version included: `https://api.openai.com/v1`. "
        "Required.",
    ),
    Key(
        "api_key",
        Kind.SECRET,
        None,
        FILE,
        "Its key. Required unless the provider is on loopback or a private network.",
        null=True,
    ),
    Key(
        "api_keys",
        Kind.SECRETS,
        None,
        FILE,
        "Its keys as a list; this version takes exactly one.",
        null=True,
    ),
    Key("display_name", Kind.STRING, None, FILE, "Name for people. Default: its name.", null=True),
    Key("tag", Kind.STRING, None, FILE, "Name for matching. Default: its name.", null=True),
    Key("enabled", Kind.BOOL, True, FILE, "`false`: nothing is sent to it."),
    Key(
        "headers",
        Kind.SECRET_MAP,
        {},
        FILE,
        "Further request headers. Values are treated as secrets.",
    ),
    later("error_map", Kind.GROUP, "Meanings of error codes in bodies.", {}),
    later("max_concurrent", Kind.INT, "Attempts at once at this provider."),
    Key("allow_http", Kind.BOOL, False, FILE, "Allows plain http beyond private networks."),
    later("forward_deadline", Kind.BOOL, "Tells the provider how long the caller waits.", False),
    Key(
        "health.mode",
        Kind.WORD,
        "none",
        FILE,
        "Probes of its health.",
        words=("none", "resting", "active"),
        only=("none",),
    ),
    inert("health.interval", Kind.DURATION, "30s", "Gap of probes.", scope=FILE, above=0),
    inert("health.timeout", Kind.DURATION, "5s", "Limit of a probe.", scope=FILE, above=0),
    later("auth", Kind.GROUP, "Other ways to authenticate.", {}),
    later("auth.kind", Kind.STRING, "Which way."),
    later("auth.api_version", Kind.STRING, "API version, where the way wants one."),
    later("auth.region", Kind.STRING, "Region, where the way wants one."),
    later("auth.project", Kind.STRING, "Project, where the way wants one."),
)

DEPLOYMENT = (
    Key("provider", Kind.STRING, None, FILE, "Name of its provider. Required."),
    Key("upstream_model", Kind.STRING, None, FILE, "The provider's name for it. Required."),
    Key(
        "serves",
        Kind.STRING,
        None,
        FILE,
        "The model that callers ask for. Default: `upstream_model`.",
        null=True,
    ),
    Key(
        "max_concurrent",
        Kind.INT,
        None,
        FILE,
        "Attempts at once. `null`: no limit.",
        null=True,
        at_least=1,
        at_most=1_000_000,
    ),
    Key("enabled", Kind.BOOL, True, FILE, "`false`: it is never a candidate."),
    later("context_max", Kind.INT, "Context window in tokens."),
    later("max_output", Kind.INT, "Greatest answer in tokens."),
    later("max_requests", Kind.INT, "Requests in its whole life."),
    later("price", Kind.GROUP, "USD per million tokens.", {}),
    later("price.input", Kind.FLOAT, "Prompt tokens."),
    later("price.output", Kind.FLOAT, "Answer tokens."),
    later("price.cache_read", Kind.FLOAT, "Prompt tokens read from a cache."),
    later("price.cache_write", Kind.FLOAT, "Prompt tokens written to a cache."),
    later("reasoning", Kind.BOOL, "It thinks before it answers.", False),
    later("capabilities", Kind.GROUP, "What it can do.", {}),
    later("capabilities.tools", Kind.BOOL, "Tool calls."),
    later("capabilities.images", Kind.BOOL, "Images in prompts."),
    later("capabilities.json_schema", Kind.BOOL, "Answers by a schema."),
    later("capabilities.prefill", Kind.BOOL, "Answers that go on from given text."),
    later("class", Kind.STRING, "Models of one class may stand in for one another."),
)

POOL = (
    Key(
        "strategy",
        Kind.WORD,
        "order",
        FILE,
        "How members are ordered. Default: the top level's.",
        words=(
            "order",
            "weighted",
            "cheapest",
            "fastest",
            "smart",
            "throughput",
            "least_busy",
        ),
        only=("order",),
    ),
)

MEMBER = (
    Key("deployment", Kind.STRING, None, FILE, "Name of a deployment. Required."),
    Key("enabled", Kind.BOOL, True, FILE, "`false`: it is skipped."),
    Key(
        "weight",
        Kind.FLOAT,
        1,
        FILE,
        "Share of requests under the strategy `weighted`.",
        above=0,
        only=(1.0,),
    ),
    later("context_max", Kind.INT, "Context window in tokens, in this pool."),
)
