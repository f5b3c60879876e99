"""One response as it arrives. Owns framing: what a head may say and where a body ends.

Feed bytes, then look at what came: `status` and `headers` once the final head is complete, `body`
pieces, `ended` or `refusal`. Nothing is called back, so whoever feeds is never re-entered from
inside the parser. The parsing itself is llhttp's; here is what it leaves open.

Surprising cases: llhttp lets through any `transfer-encoding` list that ends in `chunked`, HTTP/2.0
and HTTP/0.9 version numbers, status 099, heads and chunk extensions without end, and a second
response glued to the first; all of that is judged here. Two `content-length` fields are refused
even if they agree. A body without any framing ends with the connection (`ends_with_connection`).
Bytes after the end leave the answer as it is, but the connection is not `reusable`. Neither is
one that carried HTTP/1.0 or the answer to a HEAD request.
"""

import httptools
from msgspec import Struct

from outlast.model.fault import Break
from outlast.ports import Headers
from outlast.upstream.limits import Limits

_HEAD_END = b"\r\n\r\n"
_CHUNK_FREE_BYTES = 16
"""Overhead that every chunk may have for nothing: its size, its line ends, a short extension."""


class Refusal(Struct, frozen=True):
    """Why these bytes are no answer. `detail` quotes nothing that the peer sent."""

    how: Break
    detail: str


class Response:
    """Reads one response, interim ones before it included; see the module header.

    Chunk overhead is a budget, as Go's `net/http` has it: extensions and trailers cost, every
    chunk and every two bytes of body pay back, so that many small honest chunks never run out.
    """

    __slots__ = (
        "_chunked",
        "_chunks",
        "_content_length",
        "_fed_bytes",
        "_fields",
        "_head_bytes",
        "_head_tail",
        "_in_interim",
        "_interims",
        "_limits",
        "_overhead_bytes",
        "_parser",
        "_surplus",
        "_to_head_request",
        "_under_http10",
        "body",
        "ended",
        "headers",
        "heard",
        "kept_alive",
        "refusal",
        "status",
    )

    def __init__(self, limits: Limits, *, to_head_request: bool = False) -> None:
        self.status: int | None = None
        self.headers: Headers = []
        self.body: list[bytes] = []
        self.ended = False
        self.refusal: Refusal | None = None
        self.heard = False  # at least one byte came
        self.kept_alive = False
        self._limits = limits
        self._to_head_request = to_head_request
        self._chunked = False
        self._content_length: int | None = None
        self._under_http10 = False
        self._head_bytes = 0
        self._head_tail = b""
        self._fields = 0
        self._interims = 0
        self._in_interim = False
        self._fed_bytes = 0  # of the body's section, framing included
        self._chunks = 0
        self._overhead_bytes = 0
        self._surplus = False
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    @property
    def reusable(self) -> bool:
        """The response ended, the peer keeps the connection and sent nothing beyond the end."""
        return self.ended and self.kept_alive and not self._surplus

    @property
    def ends_with_connection(self) -> bool:
        """The head is complete and only the end of the connection can end the body."""
        return (
            self.status is not None
            and not self.ended
            and self.refusal is None
            and not self._chunked
            and self._content_length is None
        )

    def feed(self, data: bytes) -> None:
        """Take bytes in. Nothing is expected after `ended` or `refusal`."""
        self.heard = True
        if self.status is None:
            data = self._feed_head(data)
        if data and self.refusal is None:
            if self.ended:
                self._surplus = True
            else:
                self._feed_body(data)

    def take_body(self) -> bytes:
        """The body bytes since the last time; not for when there are none."""
        pieces = self.body
        self.body = []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def release(self) -> None:
        """Let go of the parser, which holds this object: no cycle is left to collect."""
        self._parser = None

    def _feed_head(self, data: bytes) -> bytes:
        """Feed until the final head is complete; returns the bytes behind it.

        The parser gets a head up to its blank line and never more, because it does not tell
        where in its input a head ended, and the limit counts every byte up to there.
        """
        while data and self.status is None and self.refusal is None:
            window = self._head_tail + data
            found = window.find(_HEAD_END)
            cut = len(data) if found < 0 else found + len(_HEAD_END) - len(self._head_tail)
            self._head_tail = window[-3:] if found < 0 else b""
            self._head_bytes += cut
            if self._head_bytes > self._limits.head_bytes_max:
                self._refuse(Break.TOO_LARGE, "the response head is longer than the limit")
                return b""
            if cut == len(data):
                self._parse(data)
                data = b""
            else:
                self._parse(data[:cut])
                data = data[cut:]
        if self.status is not None and self._to_head_request:
            self.ended = True
        return data

    def _feed_body(self, data: bytes) -> None:
        self._fed_bytes += len(data)
        if not self._chunked:
            self._parse(data)
            if self._content_length is not None and self._fed_bytes > self._content_length:
                self._surplus = True
            return
        pieces_before = len(self.body)
        self._chunks = 0
        self._parse(data)
        content_bytes = sum(map(len, self.body[pieces_before:]))
        overhead = self._overhead_bytes + len(data) - content_bytes
        overhead -= self._chunks * _CHUNK_FREE_BYTES + 2 * content_bytes
        self._overhead_bytes = max(overhead, 0)
        if self.ended and data.endswith(b"\r\n\r\n\r\n"):
            self._surplus = True  # the parser takes empty lines after the end in silence
        if self._overhead_bytes > self._limits.chunk_overhead_bytes_max and not self._surplus:
            self.ended = False
            self._refuse(Break.TOO_LARGE, "chunk extensions or trailers are over the limit")

    def _parse(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            return
        try:
            parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            raise  # a bug of ours, not of the peer
        except httptools.HttpParserUpgrade:
            self._refuse(Break.GARBAGE, "the peer switched protocols unasked")
        except httptools.HttpParserError as error:
            if self.ended:
                self._surplus = True
            else:
                self._refuse(Break.GARBAGE, f"no HTTP/1.1: {error}")

    def _refuse(self, how: Break, detail: str) -> None:
        if self.refusal is None and not self.ended:
            self.refusal = Refusal(how, detail)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A message begins: the first, the one after an interim head, or one too many."""
        if self.ended:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of a head, or of the trailers, which are dropped."""
        if self.ended or self.refusal is not None:
            return
        self._fields += 1
        if self._fields > self._limits.head_fields_max:
            self._refuse(Break.TOO_LARGE, "the response has more fields than the limit")
        elif self.status is None:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """A head is complete: refuse it, skip it (1xx), or learn the framing from it."""
        parser = self._parser
        if parser is None or self.ended or self.refusal is not None:
            return
        status = parser.get_status_code()
        version = parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            self._refuse(Break.GARBAGE, "the answer is not HTTP/1.1")
        elif status == 101 or not 100 <= status <= 599:
            self._refuse(Break.GARBAGE, f"status {status} is no answer to this request")
        elif status < 200:
            self._skip_interim()
        elif self._learn_framing():
            self._under_http10 = version == "1.0"
            self._fields = 0
            self.status = status

    def on_chunk_header(self) -> None:
        """The size line of a chunk is complete."""
        self._chunks += 1

    def on_body(self, data: bytes) -> None:
        """Bytes of the body, chunk framing removed."""
        if not self.ended and self.refusal is None:
            self.body.append(data)

    def on_message_complete(self) -> None:
        """A message ended; only here does the parser know whether the peer keeps the connection."""
        if self._in_interim:
            self._in_interim = False
        elif not self.ended and self.refusal is None and self._parser is not None:
            self.ended = True
            self.kept_alive = (
                not self._to_head_request
                and not self._under_http10
                and self._parser.should_keep_alive()
            )

    def _skip_interim(self) -> None:
        self._interims += 1
        if self._interims > self._limits.interim_max:
            self._refuse(Break.GARBAGE, "more interim answers than the limit")
            return
        self._in_interim = True
        self.headers = []
        self._fields = 0

    def _learn_framing(self) -> bool:
        """Read the two fields that frame a body (RFC 9112 section 6.3); False: refused."""
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        lengths = [value for name, value in self.headers if name == b"content-length"]
        if codings and lengths:
            self._refuse(Break.GARBAGE, "both transfer-encoding and content-length")
        elif codings and (len(codings) > 1 or codings[0].strip().lower() != b"chunked"):
            self._refuse(Break.GARBAGE, "a transfer-encoding other than chunked")
        elif len(lengths) > 1:
            self._refuse(Break.GARBAGE, "more than one content-length")
        else:
            self._chunked = bool(codings)
            self._content_length = int(lengths[0]) if lengths else None
            return True
        return False
