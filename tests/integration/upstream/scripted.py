"""Plays a script of `outlast.sim.script` on one accepted connection of a raw peer."""

from tests.integration.upstream.peer import elapsed

from outlast.sim.script import Body, Cut, End, Hang, Head, Wait, content_length


def playing(script):
    """A talk that answers every request with `script`."""

    async def talk(line):
        while True:
            await line.request()
            if not await _play(line, script):
                return

    return talk


async def _play(line, script):
    """True: the answer ended and the connection stays."""
    owed = None
    headed = False
    for step in script:
        match step:  # type: ignore[exhaustive-match]
            case Head(status, headers):
                headed = True
                owed = content_length(headers)
                lines = [b"HTTP/1.1 %d Reason" % status, *(n + b": " + v for n, v in headers)]
                if owed is None:
                    lines.append(b"transfer-encoding: chunked")
                line.say(b"\r\n".join(lines), b"\r\n\r\n")
            case Body(data) if owed is None:
                line.say(b"%x\r\n%b\r\n" % (len(data), data))
            case Body(data):
                assert owed is not None
                owed -= len(data)
                line.say(data)
            case Wait(seconds):
                await elapsed(seconds)
            case Cut():
                line.reset()
                return False
            case Hang():
                await line.gone()
                return False
            case End():
                if not headed or owed:
                    await line.writer.drain()
                    line.close()
                    await line.writer.wait_closed()
                    return False
                if owed is None:
                    line.say(b"0\r\n\r\n")
                return True
    await line.gone()
    return False
