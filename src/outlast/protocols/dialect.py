"""What a dialect must be able to say. One table of functions per dialect, no base class.

`DIALECTS` (in `protocols/table.py`) lists them; a newcomer adds a folder and one line there.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from outlast.errors import GatewayError
from outlast.model.clock import WallTime
from outlast.model.fault import Fault
from outlast.model.request import NeutralRequest
from outlast.model.usage import Usage

Headers = list[tuple[bytes, bytes]]


class WholeAnswer(Struct, frozen=True):
    """A complete, parsed answer. `body` is what the caller gets, byte for byte.

    `refused`: the model or its provider declined (an answer, not a fault).
    """

    body: bytes
    usage: Usage | None
    refused: bool = False


class StreamReader(Protocol):
    """Reads one answer stream. Any split of the same bytes gives the same frames and events.

    `feed` returns the complete frames so far that the caller may see, in order; an incomplete
    frame stays inside. Whoever feeds decides when bytes are released: before commit it holds
    them. After `fault` is set nothing more is returned.

    committed: a semantic event was fed (text, reasoning, tool call, refusal, audio, finish reason)
    data_seen: a data event of any kind was fed, errors and the terminal excepted
    finished:  a finish reason was fed
    done:      the terminal event was fed; a clean end needs it (or `finished`, see `close`)
    refused:   the finish reason says content filter
    progressed: data events (not comments) fed so far, counted; the idle timer watches it
    malformed: events that did not parse and were dropped
    fault:     the stream said an error (as its kind means it), or an event passed its size limit
    routing:   JSON object to splice into the usage chunk as `routing` (set at commit; None: none)
    """

    committed: bool
    data_seen: bool
    finished: bool
    done: bool
    refused: bool
    progressed: int
    malformed: int
    fault: Fault | None
    usage: Usage | None
    routing: bytes | None

    def feed(self, data: bytes) -> bytes: ...

    def close(self) -> bytes:
        """The stream's bytes ended cleanly. Returns bytes to add (a missing terminal).

        Sets `fault` when the end is not a legitimate one: MALFORMED_RESPONSE (nothing that
        parses), EMPTY_RESPONSE (well-formed, but no output and no finish reason), or
        CONNECTION_ERROR (output without a finish reason).
        """
        ...


class Dialect(Struct, frozen=True):
    """A dialect as a table of functions.

    path: appended to a provider's base path for its generation endpoint.
    models_path: likewise for the listing of models.
    decode: body -> request; raises GatewayError (400) for what is no request of this dialect.
    encode: request, upstream model -> body of the same dialect; every other member's bytes kept.
    auth: secret -> headers that carry it.
    forward: request header names (lower case) of a caller that travel to the provider.
    reader: request -> a reader for its answer stream.
    read_whole: response headers, body of a 2xx -> answer, or the fault that it really is.
    read_error: status, headers, body, wall time -> fault, for every status that is not 2xx.
    read_models: body of the listing -> upstream model ids; raises ValueError.
    splice_routing: whole body, JSON object -> body with `routing` (unchanged if it has it).
    error_body: error, request id, routing JSON or None -> body of a final error.
    in_band: error, reader, request id -> bytes that end a committed stream honestly.
    """

    name: str
    path: str
    models_path: str
    decode: Callable[[bytes], NeutralRequest]
    encode: Callable[[NeutralRequest, str], bytes]
    auth: Callable[[str | None], tuple[tuple[bytes, bytes], ...]]
    forward: frozenset[bytes]
    reader: Callable[[NeutralRequest], StreamReader]
    read_whole: Callable[[Headers, bytes], WholeAnswer | Fault]
    read_error: Callable[[int, Headers, bytes, WallTime], Fault]
    read_models: Callable[[bytes], list[str]]
    splice_routing: Callable[[bytes, bytes], bytes]
    error_body: Callable[[GatewayError, str, bytes | None], bytes]
    in_band: Callable[[GatewayError, StreamReader, str], bytes]
