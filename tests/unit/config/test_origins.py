"""Where a base URL leads, and where it may not."""

import pytest

from outlast.config.origins import is_loopback, read_base_url, read_listen
from outlast.model.topology import Origin


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://API.openai.com/v1/", Origin("https", "api.openai.com", 443), "/v1"),
        ("https://x.example.com:8443", Origin("https", "x.example.com", 8443), ""),
        ("http://[::1]:9/v1", Origin("http", "::1", 9), "/v1"),
    ],
)
def test_a_base_url_becomes_an_origin_and_a_path(url, origin, path):
    base = read_base_url(url, allow_http=False)
    assert (base.origin, base.base_path) == (origin, path)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "metadata.google.internal.",
        "0.0.0.0",
        "[::]",
        "224.0.0.1",
        "2852039166",
        "0xa9fea9fe",
        "169.254.43518",
        "a..b",
        "[fe80::1%25eth0]",
    ],
)
def test_what_is_no_provider_is_refused_even_when_http_is_allowed(host):
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own message
        read_base_url(f"http://{host}/v1", allow_http=True)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "10.0.0.1", "192.168.0.9", "localhost", "ollama", "a.local"]
)
def test_plain_http_is_fine_on_private_networks(host):  # fmt: skip
    assert read_base_url(f"http://{host}/v1", allow_http=False).private


@pytest.mark.parametrize("host", ["8.8.8.8", "api.example.com", "[2001:4860:4860::8888]"])
def test_plain_http_to_the_public_needs_a_word(host):
    with pytest.raises(ValueError, match="allow_http"):
        read_base_url(f"http://{host}/v1", allow_http=False)
    assert not read_base_url(f"http://{host}/v1", allow_http=True).private


def test_a_refused_url_is_not_quoted():
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_base_url("https://me:hunter2@example.com/v1", allow_http=False)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:0", ("::1", 0)),
        (":80", ("0.0.0.0", 80)),
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_listeners_are_host_and_port(text, pair):
    assert read_listen(text) == pair


@pytest.mark.parametrize(
    "text", ["8080", "::1:80", "a:b", "127.0.0.1:65536", "1.2.3:4", "[x]:1", "[127.0.0.1]:1", ""]
)
def test_what_is_no_listener_is_refused(text):  # fmt: skip
    with pytest.raises(ValueError, match="HOST:PORT"):
        read_listen(text)


def test_loopback_is_what_only_this_machine_reaches():
    assert is_loopback("127.0.0.9")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.com")
