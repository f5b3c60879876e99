"""How a request is spelled, and what may not go into its head."""

from typing import Any

import pytest
from tests.integration.upstream.world import call_to

from outlast.model.topology import Origin
from outlast.upstream.request_head import RequestHeads, host_value, whole_request


def spelled(call):
    return whole_request(RequestHeads(8).prefix(call), call)


def test_a_request_is_line_host_fields_length_and_body():
    call = call_to(8000, headers=((b"accept", b"*/*"), (b"x", b"1")), body=b"hello")
    assert spelled(call) == (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:8000\r\naccept: */*\r\nx: 1\r\n"
        b"content-length: 5\r\n\r\nhello"
    )


def test_a_post_without_a_body_says_so_and_a_get_says_nothing():
    assert b"content-length: 0\r\n" in spelled(call_to(80, body=b""))
    assert b"content-length" not in spelled(call_to(80, method=b"GET", body=b""))


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Origin("http", "a.example", 80), b"a.example"),
        (Origin("https", "a.example", 443), b"a.example"),
        (Origin("http", "a.example", 443), b"a.example:443"),
        (Origin("https", "a.example", 8443), b"a.example:8443"),
        (Origin("https", "::1", 443), b"[::1]"),
        (Origin("http", "::1", 8080), b"[::1]:8080"),
    ],
)
def test_the_host_field(origin, expected):
    assert host_value(origin) == expected


FORBIDDEN: dict[str, dict[str, Any]] = {
    "line end in a value": {"headers": ((b"x", b"a\r\nb: c"),)},
    "line feed in a value": {"headers": ((b"x", b"a\nb"),)},
    "zero in a value": {"headers": ((b"x", b"a\0b"),)},
    "line end in a name": {"headers": ((b"x\r\ny", b"1"),)},
    "space in a name": {"headers": ((b"x y", b"1"),)},
    "colon in a name": {"headers": ((b"x:", b"1"),)},
    "no name": {"headers": ((b"", b"1"),)},
    "a second host": {"headers": ((b"Host", b"b.example"),)},
    "a second length": {"headers": ((b"content-length", b"1"),)},
    "a coding": {"headers": ((b"transfer-encoding", b"chunked"),)},
    "line end in the target": {"target": b"/a\r\nb"},
    "space in the target": {"target": b"/a b"},
    "no slash in the target": {"target": b"a"},
    "line end in the method": {"method": b"GET\r\n"},
    "line end in the host": {"host": "a\r\nb"},
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_could_break_out_of_the_head_is_refused(name):
    with pytest.raises(ValueError, match=r"is|holds"):
        spelled(call_to(80, **FORBIDDEN[name]))


def test_a_refusal_does_not_quote_the_value():
    with pytest.raises(ValueError, match="authorization") as caught:
        spelled(call_to(80, headers=((b"authorization", b"Bearer sk-secret\n"),)))
    assert "secret" not in str(caught.value)


def test_the_memory_of_heads_is_bounded():
    heads = RequestHeads(2)
    first = call_to(80, target=b"/1")
    again = heads.prefix(first)
    assert heads.prefix(first) is again
    for number in range(2, 5):
        heads.prefix(call_to(80, target=b"/%d" % number))
    assert heads.prefix(first) is not again
