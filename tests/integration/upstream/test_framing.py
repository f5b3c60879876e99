"""Where a response ends and what is refused: the same bytes whole and one at a time."""

import asyncio

import pytest
from tests.contracts.upstream import END, Tape
from tests.integration.upstream.peer import elapsed
from tests.integration.upstream.world import call_to, client_and_peer, run, told

from outlast.model.fault import Break, Phase
from outlast.upstream.limits import STANDARD
from outlast.upstream.response import Response

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"

# name: (bytes, close afterwards?, status, body, is the connection kept?)
ANSWERS = {
    "content length": (HELLO, False, 200, b"hello", True),
    "chunks": (CHUNKED + b"2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\n\r\n", False, 200, b"hello", True),
    "trailers": (CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n", False, 200, b"hello", True),
    "ends with the connection": (b"HTTP/1.1 200 OK\r\n\r\nhello", True, 200, b"hello", False),
    "keep-alive in vain": (
        b"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n\r\nhello",
        True,
        200,
        b"hello",
        False,
    ),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", False, 204, b"", True),
    "204 with a length": (b"HTTP/1.1 204 X\r\ncontent-length: 5\r\n\r\n", False, 204, b"", True),
    "304 chunked": (
        b"HTTP/1.1 304 X\r\ntransfer-encoding: chunked\r\n\r\n",
        False,
        304,
        b"",
        True,
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n" + HELLO,
        False,
        200,
        b"hello",
        True,
    ),
    "sixteen interims": (b"HTTP/1.1 102 X\r\n\r\n" * 16 + HELLO, False, 200, b"hello", True),
    "HTTP/1.0": (HELLO.replace(b"1.1", b"1.0"), False, 200, b"hello", False),
    "HTTP/1.0 keep-alive": (
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello",
        False,
        200,
        b"hello",
        False,
    ),
    "connection: close": (
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
        False,
        200,
        b"hello",
        False,
    ),
    "no reason phrase": (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", False, 200, b"", True),
    "a head of just 64 KiB": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: " + b"a" * (65536 - 43) + b"\r\n\r\nhello",
        False,
        200,
        b"hello",
        True,
    ),
    "a hundred fields": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n" + b"a: 1\r\n" * 99 + b"\r\nhello",
        False,
        200,
        b"hello",
        True,
    ),
    "a hundred fields in each head": (
        b"HTTP/1.1 103 X\r\n" + b"a: 1\r\n" * 100 + b"\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n" + b"a: 1\r\n" * 99 + b"\r\nhello",
        False,
        200,
        b"hello",
        True,
    ),
    "an extension of 4,000 bytes": (
        CHUNKED + b"5;" + b"a" * 4000 + b"\r\nhello\r\n0\r\n\r\n",
        False,
        200,
        b"hello",
        True,
    ),
    "a thousand small chunks": (
        CHUNKED + b"1;a=b\r\nx\r\n" * 1000 + b"0\r\n\r\n",
        False,
        200,
        b"x" * 1000,
        True,
    ),
}

# name: (bytes, close afterwards?, phase, how, body seen before)
REFUSED = {
    "silence then close": (b"", True, Phase.HEAD, Break.EOF, b""),
    "half a head": (HELLO[:20], True, Phase.HEAD, Break.EOF, b""),
    "only an interim head": (b"HTTP/1.1 100 X\r\n\r\n", True, Phase.HEAD, Break.EOF, b""),
    "short body": (HELLO[:-2], True, Phase.BODY, Break.EOF, b"hel"),
    "no last chunk": (CHUNKED + b"5\r\nhello\r\n", True, Phase.BODY, Break.EOF, b"hello"),
    "half a last chunk": (CHUNKED + b"5\r\nhello\r\n0\r\n", True, Phase.BODY, Break.EOF, b"hello"),
    "HTTP/0.9": (b"hello, world\r\n", False, Phase.HEAD, Break.GARBAGE, b""),
    "HTTP/0.9 as a version": (
        HELLO.replace(b"1.1", b"0.9"),
        False,
        Phase.HEAD,
        Break.GARBAGE,
        b"",
    ),
    "HTTP/2.0": (HELLO.replace(b"1.1", b"2.0"), False, Phase.HEAD, Break.GARBAGE, b""),
    "TLS alert": (b"\x15\x03\x01\x00\x02\x02\x28", False, Phase.HEAD, Break.GARBAGE, b""),
    "status 99": (HELLO.replace(b"200", b"099"), False, Phase.HEAD, Break.GARBAGE, b""),
    "status 700": (HELLO.replace(b"200", b"700"), False, Phase.HEAD, Break.GARBAGE, b""),
    "101": (
        b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        False,
        Phase.HEAD,
        Break.GARBAGE,
        b"",
    ),
    "seventeen interims": (
        b"HTTP/1.1 102 X\r\n\r\n" * 17 + HELLO,
        False,
        Phase.HEAD,
        Break.GARBAGE,
        b"",
    ),
    "bare line feeds": (HELLO.replace(b"\r", b""), False, Phase.HEAD, Break.GARBAGE, b""),
    "space before a colon": (
        b"HTTP/1.1 200 OK\r\ncontent-length : 5\r\n\r\nhello",
        False,
        Phase.HEAD,
        Break.GARBAGE,
        b"",
    ),
    "a folded field": (
        b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n",
        False,
        Phase.HEAD,
        Break.GARBAGE,
        b"",
    ),
    "a bad chunk size": (CHUNKED + b"xyz\r\n", False, Phase.BODY, Break.GARBAGE, b""),
    "a bad second chunk": (
        CHUNKED + b"5\r\nhello\r\nxyz\r\n",
        False,
        Phase.BODY,
        Break.GARBAGE,
        b"hello",
    ),
    "a huge chunk size": (CHUNKED + b"f" * 20 + b"\r\n", False, Phase.BODY, Break.GARBAGE, b""),
    "a head of one byte more": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: " + b"a" * (65536 - 42) + b"\r\n\r\nhello",
        False,
        Phase.HEAD,
        Break.TOO_LARGE,
        b"",
    ),
    "a head without end": (
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70000,
        False,
        Phase.HEAD,
        Break.TOO_LARGE,
        b"",
    ),
    "interims count": (
        (b"HTTP/1.1 103 X\r\nx: " + b"a" * 8000 + b"\r\n\r\n") * 9 + HELLO,
        False,
        Phase.HEAD,
        Break.TOO_LARGE,
        b"",
    ),
    "a hundred and one fields": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n" + b"a: 1\r\n" * 100 + b"\r\nhello",
        False,
        Phase.HEAD,
        Break.TOO_LARGE,
        b"",
    ),
    "an extension of 5,000 bytes": (
        CHUNKED + b"5;" + b"a" * 5000 + b"\r\nhello\r\n",
        False,
        Phase.BODY,
        Break.TOO_LARGE,
        None,
    ),
    "trailers of 5,000 bytes": (
        CHUNKED + b"5\r\nhello\r\n0\r\nx: " + b"a" * 5000,
        False,
        Phase.BODY,
        Break.TOO_LARGE,
        b"hello",
    ),
    "a hundred and one trailers": (
        CHUNKED + b"5\r\nhello\r\n0\r\n" + b"a: 1\r\n" * 101 + b"\r\n",
        False,
        Phase.BODY,
        Break.TOO_LARGE,
        b"hello",
    ),
}
FRAMINGS_REFUSED = {
    "gzip, chunked": b"transfer-encoding: gzip, chunked",
    "chunked twice": b"transfer-encoding: chunked, chunked",
    "two codings": b"transfer-encoding: gzip\r\ntransfer-encoding: chunked",
    "two codings, chunked first": b"transfer-encoding: chunked\r\ntransfer-encoding: gzip",
    "identity": b"transfer-encoding: identity",
    "chunked with more": b"transfer-encoding: chunked;q=1",
    "coding and length": b"transfer-encoding: chunked\r\ncontent-length: 5",
    "length and coding": b"content-length: 5\r\ntransfer-encoding: chunked",
    "two lengths": b"content-length: 5\r\ncontent-length: 6",
    "two equal lengths": b"content-length: 5\r\ncontent-length: 5",
    "a list of lengths": b"content-length: 5, 5",
    "a signed length": b"content-length: +5",
    "a negative length": b"content-length: -5",
    "an empty length": b"content-length:",
    "a hexadecimal length": b"content-length: 0x5",
    "a length beyond 64 bit": b"content-length: 99999999999999999999999",
}
# Answers that are complete, but the peer said more than was asked.
SURPLUS = {
    "after a length": HELLO + b"x",
    "after chunks": CHUNKED + b"5\r\nhello\r\n0\r\n\r\nx",
    "a second response": HELLO + HELLO,
    "a second response after chunks": CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + HELLO,
    "an empty line": HELLO + b"\r\n",
    "an empty line after chunks": CHUNKED + b"5\r\nhello\r\n0\r\n\r\n\r\n",
    "after 204": b"HTTP/1.1 204 X\r\n\r\nhello",
    "five thousand bytes": CHUNKED + b"5\r\nhello\r\n0\r\n\r\n" + b"x" * 5000,
}


def say(data, *, close, bytewise=False):
    async def talk(line):
        await line.request()
        if bytewise:
            for index in range(len(data)):
                line.say(data[index : index + 1])
                await elapsed(0)
        else:
            line.say(data)
        if close:
            await line.writer.drain()
            line.close()
            await line.writer.wait_closed()
        else:
            await line.gone()

    return talk


def ask(data, *, close=False, bytewise=False, **changes):
    """What the sink hears, and how many connections are idle after it."""

    async def main():
        async with client_and_peer(say(data, close=close, bytewise=bytewise)) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, **changes))
            idle = upstream.idle_count
            await upstream.aclose()
            assert upstream.connection_count == 0
            return tape, idle

    return run(main())


def check_answer(case, *, bytewise):
    data, close, status, body, kept = case
    tape, idle = ask(data, close=close, bytewise=bytewise)
    assert tape.head[0] == status
    assert tape.body == body
    assert tape.told[-1] == END
    assert idle == kept


@pytest.mark.parametrize("name", ANSWERS)
def test_a_legitimate_answer_is_delivered(name):
    check_answer(ANSWERS[name], bytewise=False)


@pytest.mark.parametrize("name", [name for name in ANSWERS if len(ANSWERS[name][0]) < 400])
def test_an_answer_in_single_bytes_is_the_same_answer(name):
    check_answer(ANSWERS[name], bytewise=True)


def check_refusal(case, *, bytewise):
    data, close, phase, how, body = case
    tape, idle = ask(data, close=close, bytewise=bytewise)
    assert tape.failure == (phase, how)
    assert body is None or tape.body == body
    assert idle == 0


@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_answer_is_a_failure(name):
    check_refusal(REFUSED[name], bytewise=False)


@pytest.mark.parametrize("name", [name for name in REFUSED if len(REFUSED[name][0]) < 400])
def test_a_broken_answer_in_single_bytes_is_the_same_failure(name):
    check_refusal(REFUSED[name], bytewise=True)


@pytest.mark.parametrize("name", FRAMINGS_REFUSED)
def test_doubtful_framing_is_refused(name):
    head = b"HTTP/1.1 200 OK\r\n" + FRAMINGS_REFUSED[name] + b"\r\n\r\n"
    tape, idle = ask(head + b"5\r\nhello\r\n0\r\n\r\n")
    assert tape.told == [tape.told[-1]]
    assert tape.failure == (Phase.HEAD, Break.GARBAGE)
    assert idle == 0


@pytest.mark.parametrize("name", SURPLUS)
def test_more_than_the_answer_costs_the_connection_and_not_the_answer(name):
    tape, idle = ask(SURPLUS[name])
    assert tape.body == (b"" if "204" in name else b"hello")
    assert tape.told[-1] == END
    assert idle == 0


def test_the_answer_to_head_has_no_body():
    tape, idle = ask(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", method=b"HEAD", body=b"")
    assert (b"content-length", b"5") in tape.head[1]
    assert tape.told[1:] == [END]
    assert idle == 0


def test_field_names_come_in_lower_case_and_duplicates_stay():
    head = (
        b"HTTP/1.1 200 OK\r\nX-A: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\nContent-Length: 0\r\n\r\n"
    )
    tape, _ = ask(head)
    assert tape.head[1] == [
        (b"x-a", b"1"),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
        (b"content-length", b"0"),
    ]


def test_a_failure_quotes_nothing_of_the_answer():
    tape, _ = ask(b"HTTP/1.1 200 OK\r\nsecret-word: a\r\n secret-word\r\n\r\n")
    assert "secret-word" not in repr(tape.told[-1])


def test_a_body_of_many_megabytes_arrives_whole():
    body = bytes(range(256)) * 40_000
    tape, idle = ask(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert tape.body == body
    assert idle == 1


@pytest.mark.parametrize("cut", range(len(CHUNKED) - 6, len(CHUNKED) + 1))
def test_the_head_may_be_split_anywhere_before_an_endless_extension(cut):
    data = CHUNKED + b"5;" + b"a" * 5000 + b"\r\nhello\r\n"
    response = Response(STANDARD)
    response.feed(data[:cut])
    response.feed(data[cut:])
    assert response.status == 200
    assert response.refusal is not None
    assert response.refusal.how is Break.TOO_LARGE


@pytest.mark.parametrize("head", [CHUNKED + b"5\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_reset_in_the_middle_is_reset(head):
    async def talk(line):
        await line.request()
        line.say(head, b"hello")
        await heard.wait()
        line.reset()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            tape = Tape(lambda said: heard.set() if said == b"hello" else None)
            upstream.dispatch(call_to(peer.port), tape)
            await tape.ended()
            return tape.failure

    heard = asyncio.Event()
    assert run(main()) == (Phase.BODY, Break.RESET)
