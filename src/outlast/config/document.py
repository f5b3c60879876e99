"""A whole file read place by place, before anything is connected to anything else.

Owns which places a file has, the rules between keys of one place, and that references are
strings. Does not resolve references and builds no policy.
"""

from collections.abc import Sequence

from msgspec import Struct

from outlast.config.aliases import FILE_ALIASES, MEMBER_ALIASES, POLICY_ALIASES, Alias
from outlast.config.key import Section
from outlast.config.names import check_name
from outlast.config.reading import Flat, Reader
from outlast.config.report import join, shown
from outlast.config.table import (
    COLLECTIONS,
    DEPLOYMENT_SECTION,
    FILE_SECTION,
    MEMBER_SECTION,
    POOL_SECTION,
    PROVIDER_SECTION,
)
from outlast.config.tree import Tree


class Place(Struct, frozen=True):
    """One mapping of the file. `written` holds its keys, the ones with problems included.

    `readable` False: something else than a mapping stands there, which is a problem already.
    """

    name: str
    path: str
    flat: Flat
    written: frozenset[str]
    readable: bool = True


class PoolPlace(Struct, frozen=True):
    """A pool with its members."""

    place: Place
    members: tuple[Place, ...]


class Document(Struct, frozen=True):
    """All places of a file, in its order."""

    file: Flat
    providers: tuple[Place, ...]
    deployments: tuple[Place, ...]
    pools: tuple[PoolPlace, ...]


def read_document(tree: dict[str, Tree], reader: Reader) -> Document:
    """Every place of a file; problems go to the reader's report."""
    flat, top = reader.read(tree, "", FILE_SECTION, FILE_ALIASES, leave=COLLECTIONS)
    _check_within(flat, "", reader)
    providers = _entries(top, "providers", reader)
    deployments = _entries(top, "deployments", reader)
    pools = _entries(top, "pools", reader)
    listed = reader.report.written("deployments")
    if not providers and not reader.report.problems:
        reader.report.problem(
            "providers", "none; add one with dialect, base_url and api_key, and a deployment of it"
        )
    return Document(
        file=flat,
        providers=tuple(
            _place(name, raw, join("providers", name), PROVIDER_SECTION, reader)
            for name, raw in providers.items()
        ),
        deployments=tuple(
            _place(name, raw, join(listed, name), DEPLOYMENT_SECTION, reader)
            for name, raw in deployments.items()
        ),
        pools=tuple(_pool(name, raw, reader) for name, raw in pools.items()),
    )


def _entries(top: dict[str, Tree], collection: str, reader: Reader) -> dict[str, Tree]:
    raw = top.get(collection)
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        reader.report.problem(collection, f"must be a mapping of names, got {shown(raw)}")
        return {}
    routable = collection != "providers"
    return {
        name: value
        for name, value in raw.items()
        if check_name(name, join(collection, name), reader.report, routable=routable)
    }


def _place(
    name: str,
    raw: Tree,
    path: str,
    section: Section,
    reader: Reader,
    aliases: Sequence[Alias] = POLICY_ALIASES,
    leave: tuple[str, ...] = (),
) -> Place:
    flat, tree = reader.read(raw, path, section, aliases, leave)
    _check_within(flat, path, reader)
    return Place(name, path, flat, frozenset(tree), readable=isinstance(raw, dict))


def _pool(name: str, raw: Tree, reader: Reader) -> PoolPlace:
    path = join("pools", name)
    place = _place(name, raw, path, POOL_SECTION, reader, leave=("members",))
    here = join(path, "members")
    members = raw.get("members") if isinstance(raw, dict) else None
    if not isinstance(members, list) or not members:
        if isinstance(raw, dict):
            reader.report.problem(here, "must be a list of at least one `{deployment: NAME}`")
        return PoolPlace(place, ())
    return PoolPlace(
        place,
        tuple(
            _place(str(n), item, f"{here}[{n}]", MEMBER_SECTION, reader, MEMBER_ALIASES)
            for n, item in enumerate(members)
        ),
    )


def _check_within(flat: Flat, path: str, reader: Reader) -> None:
    """Rules between keys that stand in one place."""
    report = reader.report
    longest, first = (
        flat.get(f"circuit_breaker.{name}") for name in ("max_open_duration", "open_duration")
    )
    if isinstance(longest, float) and isinstance(first, float) and longest < first:
        message = f"must be >= open_duration ({first:g} s), got {longest:g} s"
        report.problem(join(join(path, "circuit_breaker"), "max_open_duration"), message)
    both = _words(flat, "retry.retry_on") & _words(flat, "retry.do_not_retry_on")
    if both:
        where = join(join(path, "retry"), "do_not_retry_on")
        report.problem(where, f"{', '.join(sorted(both))} stands in retry_on too; keep one")
    last = "timeouts.first_token_bounds.last"
    if last in flat and "timeouts.first_token" in flat:
        where = join(join(join(path, "timeouts"), "first_token_bounds"), "last")
        report.warn(where, "has no effect beside an explicit first_token")


def _words(flat: Flat, path: str) -> frozenset[str]:
    value = flat.get(path)
    return frozenset(value) if isinstance(value, tuple) else frozenset()
