"""One place of the file against its section of the table: every key checked, flattened by path.

Owns unknown keys (with the nearest known one), keys that stand in the wrong place, keys and values
that are not built yet, and values that do not parse. Does not compare keys with one another, and
does not know where values end up.

Surprising case: a group that may be `null` yields a value of its own (`True` when it is a
mapping), so that a later layer can turn it off as a whole.
"""

import difflib
from collections.abc import Sequence

from outlast.config.aliases import VALUES, Alias, normalised
from outlast.config.key import Key, Kind, Section
from outlast.config.report import Report, join, shown
from outlast.config.secret import Secret, Secrets
from outlast.config.tree import Tree
from outlast.config.values import parse, spell

_EXHAUSTED_MAPPINGS = ("fallback_pool", "queue")

Flat = dict[str, object]
"""Key path -> parsed value, for the keys that one place sets."""


class Reader:
    """Reads places of one file; problems go to its report."""

    def __init__(self, report: Report, secrets: Secrets) -> None:
        self.report = report
        self._secrets = secrets

    def read(
        self,
        tree: Tree,
        path: str,
        section: Section,
        aliases: Sequence[Alias],
        leave: tuple[str, ...] = (),
    ) -> tuple[Flat, dict[str, Tree]]:
        """What one place sets, and the mapping in canonical spelling.

        `leave` names keys that somebody else reads out of that mapping.
        """
        if not isinstance(tree, dict):
            self.report.problem(path, f"must be a mapping of settings, got {shown(tree)}")
            return {}, {}
        canonical = normalised(tree, path, aliases, self.report)
        flat: Flat = {}
        nearby = [*leave, *(alias.written.partition(".")[0] for alias in aliases)]
        here = {name: value for name, value in canonical.items() if name not in leave}
        self._group(here, path, "", section, flat, nearby)
        return flat, canonical

    def _group(
        self,
        tree: dict[str, Tree],
        where: str,
        group: str,
        section: Section,
        flat: Flat,
        nearby: list[str],
    ) -> None:
        for name, raw in tree.items():
            path = f"{group}.{name}" if group else name
            here = join(where, name)
            if isinstance(raw, dict) and section.holds_elsewhere(path):
                self._group(raw, here, path, section, flat, [])
                continue
            if "." in name or not section.knows(path):
                self._unknown(name, path, here, group, section, nearby)
                continue
            key = section.keys.get(path)
            if isinstance(raw, dict) and (key is None or key.kind is Kind.GROUP):
                self._enter(raw, here, path, key, section, flat)
            elif key is None:
                self.report.problem(here, f"must be a mapping, got {shown(raw)}")
            else:
                self._value(key, raw, here, flat)

    def _enter(
        self,
        tree: dict[str, Tree],
        here: str,
        path: str,
        key: Key | None,
        section: Section,
        flat: Flat,
    ) -> None:
        """A mapping where one may stand."""
        if key is not None and not key.built and not section.names(path):
            if tree:
                self.report.problem(here, _not_built(key))
            return
        if key is not None and key.built:
            flat[path] = True
        self._group(tree, here, path, section, flat, [])

    def _value(self, key: Key, raw: Tree, here: str, flat: Flat) -> None:
        if key.kind in {Kind.SECRET, Kind.SECRETS, Kind.SECRET_MAP}:
            self._secret(key, raw, here, flat)
            return
        if key.kind is Kind.GROUP:
            if raw is None and (key.null or not key.built):
                flat[key.path] = None
            else:
                self.report.problem(here, f"must be a mapping, got {shown(raw)}")
            return
        if key.kind is Kind.EXHAUSTED:
            raw = self._exhausted(raw, here)
        if _is_later_word(key, raw):
            self.report.problem(here, _word_not_built(key, raw))
            return
        try:
            value = parse(key, raw)
        except ValueError as error:
            self.report.problem(here, str(error))
            return
        if key.only is not None and value not in key.only:
            self.report.problem(here, _not_built(key, raw))
        else:
            flat[key.path] = value

    def _exhausted(self, raw: Tree, here: str) -> Tree:
        """`on_exhausted` with historic words replaced, and known mappings by their word."""
        if isinstance(raw, dict) and len(raw) == 1:
            (name,) = raw
            return name if name in _EXHAUSTED_MAPPINGS else raw
        word = VALUES.get(str(raw))
        if word is None:
            return raw
        self.report.aliases.append(f"{here}: {raw} read as {word}")
        return word

    def _secret(self, key: Key, raw: Tree, here: str, flat: Flat) -> None:
        if raw is None and (key.null or not key.built):
            flat[key.path] = None
        elif not key.built:
            self.report.problem(here, _not_built(key))
        elif key.kind is Kind.SECRET_MAP:
            if isinstance(raw, dict):
                flat[key.path] = self._secret_map(raw, here)
            else:
                self.report.problem(here, "must be a mapping of header name to value")
        elif key.kind is not Kind.SECRETS:
            self._one_secret(key, raw, here, flat)
        elif isinstance(raw, list) and len(raw) == 1:
            self._one_secret(key, raw[0], f"{here}[0]", flat)
        else:
            message = "must be a list of exactly one key; several are not built yet"
            self.report.problem(here, message)

    def _one_secret(self, key: Key, raw: Tree, here: str, flat: Flat) -> None:
        secret = self._secrets.find(raw, here)
        if secret is not None:
            flat[key.path] = secret

    def _secret_map(self, raw: dict[str, Tree], here: str) -> dict[str, Secret]:
        found = {
            name: self._secrets.find(value, join(here, name), literal_warns=False)
            for name, value in raw.items()
        }
        return {name: secret for name, secret in found.items() if secret is not None}

    def _unknown(
        self, name: str, path: str, here: str, group: str, section: Section, nearby: list[str]
    ) -> None:
        if path == "failover.exclusions" and path in section.elsewhere:
            self.report.problem(here, "stands in pools only")
            return
        if path in section.elsewhere:
            message = (
                f"belongs to the whole request and may not stand in {section.title}; "
                "put it at the top level or in a pool"
            )
            self.report.problem(here, message)
            return
        known = section.names(group)
        near = difflib.get_close_matches(name, [*known, *nearby], n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
        self.report.problem(here, f"unknown key; {hint}")


def _is_later_word(key: Key, raw: Tree) -> bool:
    """A word of a key whose other values are no words (`first_token: adaptive`)."""
    numeric = key.kind not in {Kind.WORD, Kind.WORDS, Kind.EXHAUSTED}
    return numeric and not key.inert and isinstance(raw, str) and raw in key.words


def _word_not_built(key: Key, raw: Tree) -> str:
    return f"{raw} is not built yet; write a {key.kind.value}"


def _not_built(key: Key, raw: Tree = None) -> str:
    honoured = [spell(key, value) for value in key.only or ()]
    words = " or ".join(dict.fromkeys(honoured))
    if key.built:
        return f"{shown(raw)} is not built yet; this version knows {words} only"
    return f"not built yet; leave it out, or write {words}"
