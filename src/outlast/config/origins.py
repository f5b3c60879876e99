"""From a provider's `base_url` to where its connections go, and what may not be reached.

Owns which addresses are private, which are never a provider's, and the reading of `listen`
addresses. Does not resolve names: what a name resolves to is checked where connections are made.

Surprising cases: a name of one label, and names under `.local`, `.internal`, `.lan`,
`.home.arpa` and `.localhost` count as private, for no public zone holds them. `127.1`,
`0x7f000001` and `2130706433` are refused instead of guessed at: C libraries read them as
addresses. An IPv6 address that carries an IPv4 one is judged by that.

Source: RFC 6890 (special-purpose addresses), RFC 6761 and RFC 8375 (special names).
"""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from outlast.config.report import shown
from outlast.model.topology import Origin

_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data.ec2.internal"})
_METADATA_ADDRESSES = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "fd00:ec2::254", "168.63.129.16"))
)
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
                   r"(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*\Z")  # fmt: skip
_LAST_LABEL_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\Z")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*\Z")
_ENDINGS = ("/chat/completions", "/responses", "/models")
_PORT = re.compile(r"[0-9]{1,5}\Z")
ANY_HOST = "0.0.0.0"  # noqa: S104 - what `:8080` means
_PORTS = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Base(Struct, frozen=True):
    """A base URL that can be used. `private`: on loopback or in a private network."""

    origin: Origin
    base_path: str
    private: bool


def read_base_url(text: str, *, allow_http: bool) -> Base:
    """Where a provider is. The path keeps its version and loses its trailing slash.

    Raises:
        ValueError: it cannot be used, and why. The message does not quote it: it may hold a key.
    """
    parts = _split(text)
    host = (parts.hostname or "").lower().rstrip(".")
    private = _judge_host(host)
    if parts.scheme == "http" and not private and not allow_http:
        message = "plain http to a public host shows the key to everybody on the way; write https, "
        raise ValueError(message + "or allow_http: true")
    path = parts.path.rstrip("/")
    if not _PATH.match(path) or "/../" in path + "/" or "//" in path:
        raise ValueError("its path must be plain ASCII without .. or empty parts")
    for ending in _ENDINGS:
        if path.endswith(ending):
            raise ValueError(f"is what precedes {ending}; drop that part")
    port = parts.port or _PORTS[parts.scheme]
    return Base(Origin(parts.scheme, host, port), path, private)


def _split(text: str) -> SplitResult:
    if any(char <= " " or char >= "\x7f" for char in text) or "\\" in text:
        raise ValueError("must be an ASCII URL without spaces or control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is no URL: its host or port cannot be read") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("must be a URL such as https://api.openai.com/v1")
    if port == 0:
        raise ValueError("port 0 cannot be reached")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or password; use api_key or headers")
    if "?" in text or "#" in text:
        raise ValueError("must not hold a query or a fragment")
    return parts


def _judge_host(host: str) -> bool:
    """Is a host private?

    Raises:
        ValueError: it is not to be reached at all, or is no host.
    """
    address = _address(host)
    if address is not None:
        return _judge_address(address)
    if not _HOST.match(host) or _LAST_LABEL_NUMBER.match(host):
        raise ValueError("its host is neither a name nor an address in the usual spelling")
    if host in _METADATA_NAMES:
        raise ValueError("is a cloud's metadata service, never a provider")
    return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _judge_address(address: Address) -> bool:
    inner = _embedded(address)
    if inner is not None:
        return _judge_address(inner)
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        raise ValueError("must not name a network interface")
    if address.is_link_local or address in _METADATA_ADDRESSES:
        raise ValueError("is link-local or a cloud's metadata address, never a provider")
    if address.is_unspecified or address.is_multicast:
        raise ValueError("is no address that can be connected to")
    if isinstance(address, ipaddress.IPv4Address) and address.is_reserved:
        raise ValueError("is no address that can be connected to")
    return address.is_private


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside a mapped, 6to4 or NAT64 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in ipaddress.ip_network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def read_listen(text: str) -> tuple[str, int]:
    """Host and port of a listener: `127.0.0.1:8080`, `[::1]:8080`, `:8080` (every address).

    Raises:
        ValueError: it is none.
    """
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host or ANY_HOST
    address = _address(bare)
    if isinstance(address, ipaddress.IPv6Address):
        good = bare is not host  # without brackets nobody can tell the port
    else:
        name = bare.lower()
        named = _HOST.match(name) is not None and not _LAST_LABEL_NUMBER.match(name)
        good = bare == (host or ANY_HOST) and (address is not None or named)
    if not good or not _PORT.match(port) or int(port) > 65535 or ":" not in text:
        raise ValueError(f"must be HOST:PORT such as 127.0.0.1:8080, got {shown(text)}")
    return bare, int(port)


def is_loopback(host: str) -> bool:
    """Can a listener on this host be reached from this machine only?"""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback
