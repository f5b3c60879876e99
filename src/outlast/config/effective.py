"""Every effective value and the layer that it came from, for people.

Owns which rows are printed and that secrets are not. Values of a deployment that are as at the top
level are left out of the general list; the list of one pool is complete.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from outlast.config.key import Key, Kind
from outlast.config.layers import BUILT_IN, FILE, Layered
from outlast.config.loaded import Loaded
from outlast.config.report import join
from outlast.config.table import (
    CANDIDATE_POLICY,
    DEPLOYMENT_SECTION,
    FILE_SECTION,
    POOL_SECTION,
    PROVIDER_SECTION,
)
from outlast.config.values import spell
from outlast.model.ids import PoolName

MASK = "****"


class Row(Struct, frozen=True):
    """One effective value as one would write it, and who said so."""

    path: str
    value: str
    layer: str


def effective(loaded: Loaded, pool: str | None = None) -> list[Row]:
    """Rows for everything, or for one pool and its members.

    Raises:
        KeyError: no pool of the file is called that.
    """
    from_ = loaded.provenance
    if pool is not None:
        rows = list(_rows(join("pools", pool), from_.pools[pool], POOL_SECTION.keys))
        members = loaded.topology.pools[PoolName(pool)].members
        for index, (member, settings) in enumerate(zip(members, from_.members[pool], strict=True)):
            where = f"{join('pools', pool)}.members[{index}]"
            rows.append(Row(f"{where}.deployment", member.deployment, f"pool {pool}"))
            keys = {key.path: key for key in CANDIDATE_POLICY}
            rows.extend(_rows(where, settings, keys))
        return rows
    rows = list(_rows("", from_.file, FILE_SECTION.keys))
    for collection, places, section in (
        ("providers", from_.providers, PROVIDER_SECTION),
        ("deployments", from_.deployments, DEPLOYMENT_SECTION),
        ("pools", from_.pools, POOL_SECTION),
    ):
        for name, settings in places.items():
            where = join(collection, name)
            rows.extend(_rows(where, settings, section.keys, skip=(BUILT_IN, FILE)))
    return rows


def _rows(
    where: str, settings: Layered, keys: Mapping[str, Key], skip: Iterable[str] = ()
) -> Iterable[Row]:
    off: list[str] = []  # groups that are off: what would tune them says nothing
    for path, key in keys.items():
        setting = settings.settings.get(path)
        if setting is None or setting.layer in skip or path.startswith(tuple(off)):
            continue
        if key.kind is Kind.GROUP:
            if setting.value is not None:
                continue
            off.append(f"{path}.")
        value = _shown(key, setting.value)
        yield Row(f"{where}.{path}" if where else path, value, setting.layer)


def _shown(key: Key, value: object) -> str:
    """A value as it is printed; of secrets only that they are there."""
    if value is None:
        return "null"
    if key.kind in {Kind.SECRET, Kind.SECRETS}:
        return MASK
    if key.kind is Kind.SECRET_MAP:
        names = value if isinstance(value, dict) else {}
        return "{" + ", ".join(f"{name}: {MASK}" for name in names) + "}"
    return spell(key, value)
