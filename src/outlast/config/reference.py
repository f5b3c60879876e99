"""The reference page of settings, out of the table: `python -m outlast.config.reference`."""

import sys
from collections.abc import Iterable

from outlast.config.aliases import FILE_ALIASES, MEMBER_ALIASES, TRIP_MODE, VALUES, Alias
from outlast.config.key import Key, Kind, Scope
from outlast.config.table import CANDIDATE_POLICY, REQUEST_POLICY
from outlast.config.table_file import LATER, SERVER, TELEMETRY, TOP
from outlast.config.table_patience import POOL_FAILOVER
from outlast.config.table_places import DEPLOYMENT, MEMBER, POOL, PROVIDER
from outlast.config.values import spell

_HEAD = """\
# Settings

<!-- Generated from the table of settings by `python -m outlast.config.reference`. -->

One YAML file, `outlast.yaml`. Unknown keys are errors, and all errors are reported together.
Durations are `200ms`, `2s`, `1m30s` or a number of seconds; sizes are `32MiB` or a number of
bytes. A secret is `{env: NAME}`, `{file: PATH}` (relative to this file) or `${NAME}`; a secret
written out works, with a warning. `on`, `off`, `yes` and `no` are strings.

Later layers win: built-in, file, provider, deployment, pool, member.

A key that is *not built yet* is known and has no effect: it may be left out or say what the
column "off" says; anything else is an error. A key that is *inert* tunes something that is not
built yet: it is checked and has no effect.
"""
_SECTIONS: tuple[tuple[str, str, tuple[Key, ...]], ...] = (
    ("The file", "At the top level.", (*TOP, *SERVER, *TELEMETRY)),
    (
        "Policy of a request",
        "At the top level and in pools. `strategy` stands there too.",
        (*REQUEST_POLICY, *POOL_FAILOVER),
    ),
    (
        "Policy of a candidate",
        "At the top level and in providers, deployments, pools and members.",
        CANDIDATE_POLICY,
    ),
    ("Providers", "In `providers.NAME`.", PROVIDER),
    ("Deployments", "In `deployments.NAME`.", DEPLOYMENT),
    ("Pools", "In `pools.NAME`, beside `members`, a list, and all policy keys.", POOL),
    ("Members", "In `pools.NAME.members[N]`.", MEMBER),
    ("Not built yet", "At the top level.", LATER),
)


def render() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    for title, where, keys in _SECTIONS:
        parts.append(f"\n## {title}\n\n{where}\n\n{_table(keys)}")
    aliases = dict.fromkeys((*FILE_ALIASES, *MEMBER_ALIASES))
    parts.append(f"\n## Other spellings\n\n{_alias_table(aliases)}")
    return "".join(parts)


def _table(keys: Iterable[Key]) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{key.path}` | {_kind(key)} | {_default(key)} | {_meaning(key)} |" for key in keys
    ]
    return "\n".join(lines) + "\n"


def _kind(key: Key) -> str:
    if key.words and key.built:
        return " \\| ".join(f"`{word}`" for word in key.words) + (
            f", or {key.kind.value}" if key.kind is Kind.DURATION else ""
        )
    return key.kind.value


def _default(key: Key) -> str:
    if key.default is None and key.scope is Scope.FILE and key.built:
        return ""
    if isinstance(key.default, str):
        return f"`{key.default}`"
    return f"`{spell(key, key.default)}`"


def _meaning(key: Key) -> str:
    if key.inert:
        return f"{key.meaning} *Inert.*"
    off = " or ".join(dict.fromkeys(f"`{spell(key, value)}`" for value in key.only or ()))
    if not key.built:
        return f"{key.meaning} *Not built yet; off: {off}.*"
    return f"{key.meaning} *This version knows {off} only.*" if off else key.meaning


def _alias_table(aliases: Iterable[Alias]) -> str:
    lines = ["| written | read as | spelling of |", "|---|---|---|"]
    lines += [f"| `{a.written}` | `{a.canonical}` | {a.origin} |" for a in aliases]
    lines.append(f"| `{TRIP_MODE}` | dropped where it says `consecutive` | busbar |")
    lines += [
        f"| `on_exhausted: {written}` | `on_exhausted: {word}` | busbar |"
        for written, word in VALUES.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
