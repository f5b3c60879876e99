"""How a connection comes about: phases, addresses, TLS, and what is left of those that fail."""

import asyncio
import ssl

import pytest
from tests.contracts.upstream import END, Tape
from tests.integration.upstream.certificates import Authority
from tests.integration.upstream.peer import answering, listen, ok
from tests.integration.upstream.world import LOOPS, call_to, client, client_and_peer, run, told

from outlast.model.fault import Break, Phase
from outlast.sim.sockets import closed_port, silent_port


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def resolving(*addresses):
    async def resolver(host, port):
        return addresses

    return resolver


@pytest.fixture(params=LOOPS)
def loop_name(request):
    return request.param


def test_a_name_is_looked_up():
    async def main():
        async with client_and_peer(answering(ok())) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, host="localhost"))
            assert tape.told[-1] == END
            host = f"host: localhost:{peer.port}\r\n".encode()
            assert host in peer.requests[0][0]

    run(main())


def test_a_name_without_an_address_fails_in_phase_dns(loop_name):
    async def failing(host, port):
        raise OSError("no such name")

    async def main():
        for resolver in (failing, resolving()):
            async with client(resolver=resolver) as upstream:
                tape = await told(upstream, call_to(80, host="nowhere.invalid"))
                assert tape.failure == (Phase.DNS, Break.REFUSED)
                assert upstream.connection_count == 0

    run(main(), loop_name)


def test_a_name_that_cannot_be_spelled_fails_in_phase_dns():
    async def main():
        async with client() as upstream:
            tape = await told(upstream, call_to(80, host="a" * 70 + ".invalid"))
            assert tape.failure == (Phase.DNS, Break.REFUSED)

    run(main())


def test_a_lookup_that_hangs_times_out_in_phase_dns(loop_name):
    async def hanging(host, port):
        await asyncio.Event().wait()

    async def main():
        async with client(resolver=hanging) as upstream:
            call = call_to(80, host="slow.invalid", connect_timeout_s=0.05)
            assert (await told(upstream, call)).failure == (Phase.DNS, Break.TIMEOUT)

    run(main(), loop_name)


def test_the_next_address_is_tried_when_one_refuses(loop_name):
    async def main():
        resolver = resolving("127.0.0.9", "127.0.0.1")  # the peer listens on the second only
        async with client_and_peer(answering(ok()), resolver=resolver) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, host="two.invalid"))
            assert tape.told[-1] == END

    run(main(), loop_name)


def test_a_black_hole_does_not_hide_the_next_address(loop_name):
    async def main():
        with silent_port("127.0.0.9") as port:
            server = await asyncio.start_server(serve, "127.0.0.1", port)
            async with client(resolver=resolving("127.0.0.9", "127.0.0.1")) as upstream, server:
                call = call_to(port, host="two.invalid", connect_timeout_s=0.4)
                tape = await told(upstream, call)
                assert tape.told[-1] == END

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ok())
        await reader.read()
        writer.close()

    run(main(), loop_name)


def test_the_last_address_names_the_failure():
    async def main():
        with closed_port() as port:
            async with client(resolver=resolving("127.0.0.9", "127.0.0.1")) as upstream:
                tape = await told(upstream, call_to(port, host="two.invalid"))
                assert tape.failure == (Phase.CONNECT, Break.REFUSED)
                assert "127.0.0.1" in tape.told[-1].detail

    run(main())


def test_cancel_while_connecting_leaves_nothing(loop_name):
    async def main():
        with silent_port() as port:
            async with client() as upstream:
                exchange = upstream.dispatch(call_to(port), tape := Tape())
                await told(upstream, call_to(port, connect_timeout_s=0.05))
                exchange.cancel()
                await upstream.aclose()
                assert tape.told == []
                assert upstream.connection_count == 0
                assert not upstream._openings

    run(main(), loop_name)


def test_a_resolver_that_holds_back_the_cancellation_sends_nothing():
    async def stubborn(host, port):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ("127.0.0.1",)

    async def main():
        async with client_and_peer(answering(ok()), resolver=stubborn) as (upstream, peer):
            call = call_to(peer.port, host="slow.invalid")
            exchange = upstream.dispatch(call, tape := Tape())
            await started.wait()
            exchange.cancel()
            await peer.until(lambda: len(peer.lines) == 1 and peer.open_count == 0)
            assert peer.requests == []
            assert tape.told == []

    started = asyncio.Event()
    run(main())


def test_a_bug_in_a_resolver_ends_the_call_and_is_reported():
    async def broken(host, port):
        raise ZeroDivisionError

    async def main():
        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: reports.append(what))
        async with client(resolver=broken) as upstream:
            tape = await told(upstream, call_to(80, host="x.invalid"))
            assert tape.failure[0] is Phase.CONNECT
            assert upstream.connection_count == 0
        assert [type(report["exception"]) for report in reports] == [ZeroDivisionError]

    run(main())


def test_tls_verifies_and_names_the_host(authority, loop_name):
    async def main():
        names = []
        server = authority.server_context("api.example")
        server.sni_callback = lambda _sock, name, _context: names.append(name)
        async with client_and_peer(
            answering(ok(b"safe")),
            server_context=server,
            resolver=resolving("127.0.0.1"),
            ssl_context=authority.client_context(),
        ) as (upstream, peer):
            call = call_to(peer.port, scheme="https", host="api.example")
            for _ in range(2):
                assert (await told(upstream, call)).body == b"safe"
            assert names == ["api.example"]
            line = peer.lines[0].writer.get_extra_info("ssl_object")
            assert line.selected_alpn_protocol() == "http/1.1"

    run(main(), loop_name)


def test_a_certificate_for_another_name_is_refused(authority, loop_name):
    async def main():
        async with client_and_peer(
            answering(ok()),
            server_context=authority.server_context("other.example"),
            resolver=resolving("127.0.0.1"),
            ssl_context=authority.client_context(),
        ) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, scheme="https", host="api.example"))
            assert tape.failure == (Phase.TLS, Break.REFUSED)
            await upstream.aclose()
            assert upstream.connection_count == 0

    run(main(), loop_name)


def test_an_unknown_authority_is_refused_by_the_standard_context(authority):
    async def main():
        server = authority.server_context("127.0.0.1")
        async with client_and_peer(answering(ok()), server_context=server) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, scheme="https"))
            assert tape.failure == (Phase.TLS, Break.REFUSED)

    run(main())


def test_a_peer_that_speaks_no_tls_is_garbage(authority, loop_name):
    async def talk(line):
        line.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await line.gone()

    async def main():
        options = {"ssl_context": authority.client_context()}
        async with client_and_peer(talk, **options) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, scheme="https"))
            assert tape.failure == (Phase.TLS, Break.GARBAGE)
            await peer.until(lambda: peer.open_count == 0)

    run(main(), loop_name)


def test_a_close_in_the_handshake_fails_in_phase_tls(authority, loop_name):
    async def talk(line):
        await line.reader.read(1)
        line.close()

    async def main():
        options = {"ssl_context": authority.client_context()}
        async with client_and_peer(talk, **options) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, scheme="https"))
            phase, how = tape.failure
            assert phase is Phase.TLS
            assert how in {Break.RESET, Break.EOF}

    run(main(), loop_name)


def test_a_hung_handshake_times_out_and_its_socket_is_closed_at_once(authority, loop_name):
    async def main():
        async def talk(line):
            await line.gone()
            gone.set_result(asyncio.get_running_loop().time())

        loop = asyncio.get_running_loop()
        gone = loop.create_future()
        options = {"ssl_context": authority.client_context()}
        async with client_and_peer(talk, **options) as (upstream, peer):
            call = call_to(peer.port, scheme="https", connect_timeout_s=0.1)
            tape = await told(upstream, call)
            failed_at = loop.time()
            assert tape.failure == (Phase.TLS, Break.TIMEOUT)
            assert await gone - failed_at < 0.5
            assert upstream.connection_count == 0

    run(main(), loop_name)


def test_cancel_in_a_hung_handshake_closes_the_socket(authority, loop_name):
    async def talk(line):
        await line.reader.read(1)
        greeted.set()
        await line.gone()

    async def main():
        options = {"ssl_context": authority.client_context()}
        async with client_and_peer(talk, **options) as (upstream, peer):
            exchange = upstream.dispatch(call_to(peer.port, scheme="https"), tape := Tape())
            await greeted.wait()
            exchange.cancel()
            await peer.until(lambda: peer.open_count == 0)
            assert tape.told == []
            await upstream.aclose()
            assert upstream.connection_count == 0

    greeted = asyncio.Event()
    run(main(), loop_name)


def test_the_standard_context_verifies_and_is_built_once():
    async def main():
        async with client() as upstream:
            context = upstream._connector._context()
            assert context is upstream._connector._context()
            assert context.verify_mode is ssl.CERT_REQUIRED
            assert context.check_hostname

    run(main())


def test_ipv6_goes_into_brackets():
    async def main():
        async with client_and_peer(answering(ok()), host="::1") as (upstream, peer):
            assert (await told(upstream, call_to(peer.port, host="::1"))).told[-1] == END
            assert f"host: [::1]:{peer.port}\r\n".encode() in peer.requests[0][0]

    try:
        probe = listen(answering(ok()), host="::1")
        run(_opened_and_closed(probe))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    run(main())


async def _opened_and_closed(context):
    async with context:
        return
