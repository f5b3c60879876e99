"""A provider of the file made ready: its origin, its key, its headers.

Owns what must be there (dialect, base URL, a key for a hosted provider) and which headers may be
added. Does not know where secrets come from.
"""

import re

from outlast.config.origins import Base, read_base_url
from outlast.config.reading import Flat
from outlast.config.report import Report, join
from outlast.config.secret import Secret
from outlast.model.ids import CredentialId, ProviderName
from outlast.model.topology import Credential, Provider

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_OURS = frozenset(
    {
        "host",
        "content-length",
        "connection",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "keep-alive",
        "accept-encoding",
    }
)
"""Header fields that frame a message or its connection: the client writes them (RFC 9110 7.6.1)."""


def read_provider(
    name: str, flat: Flat, written: frozenset[str], path: str, report: Report
) -> Provider | None:
    """The provider that these settings describe; None: they do not, and problems were noted.

    `written` holds the keys that stand in the file, the unusable ones included.
    """
    if "dialect" not in written:
        report.problem(join(path, "dialect"), "missing; write `dialect: openai`")
    base = _base(flat, written, path, report)
    secret = _secret(flat, written, path, report, private=base is None or base.private)
    headers = _headers(flat, join(path, "headers"), report)
    if base is None or "dialect" not in flat:
        return None
    return Provider(
        name=ProviderName(name),
        display_name=str(flat.get("display_name") or name),
        tag=str(flat.get("tag") or name),
        dialect=str(flat["dialect"]),
        origin=base.origin,
        base_path=base.base_path,
        credential=Credential(CredentialId(f"{name}#0"), secret.text if secret else None),
        headers=headers,
        enabled=flat.get("enabled") is not False,
    )


def _base(flat: Flat, written: frozenset[str], path: str, report: Report) -> Base | None:
    here = join(path, "base_url")
    if "base_url" not in written:
        report.problem(here, "missing; write for example `base_url: https://api.openai.com/v1`")
    if "base_url" not in flat:
        return None
    try:
        return read_base_url(str(flat["base_url"]), allow_http=flat.get("allow_http") is True)
    except ValueError as error:
        report.problem(here, str(error))
        return None


def _secret(
    flat: Flat, written: frozenset[str], path: str, report: Report, *, private: bool
) -> Secret | None:
    if {"api_key", "api_keys"} <= written:
        report.problem(join(path, "api_keys"), "stands beside api_key; keep one of them")
    secret = flat.get("api_key") or flat.get("api_keys")
    if isinstance(secret, Secret):
        return secret
    failed = any(key in written and key not in flat for key in ("api_key", "api_keys"))
    if not private and not failed and not _has_own_auth(flat):
        report.problem(
            join(path, "api_key"),
            "missing for a hosted provider; write `api_key: {env: NAME}`",
        )
    return None


def _has_own_auth(flat: Flat) -> bool:
    """Does a configured header carry the key instead?"""
    headers = flat.get("headers")
    return isinstance(headers, dict) and any(
        name.lower() in {"authorization", "api-key", "x-api-key"} for name in headers
    )


def _headers(flat: Flat, path: str, report: Report) -> tuple[tuple[bytes, bytes], ...]:
    headers = flat.get("headers")
    if not isinstance(headers, dict):
        return ()
    found: dict[str, bytes] = {}
    for name, secret in headers.items():
        lower = name.lower()
        here = join(path, name)
        if not _TOKEN.match(name):
            report.problem(here, "is no header name (RFC 9110 5.1)")
        elif lower in _OURS:
            report.problem(here, "frames the message and is written by Outlast; drop it")
        elif lower in found:
            report.problem(here, "stands twice, in different cases; keep one")
        elif isinstance(secret, Secret):
            found[lower] = secret.text.encode("ascii")
    return tuple((name.encode("ascii"), value) for name, value in found.items())
