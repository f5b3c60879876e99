"""How much one caller may ask of a connection. Owns the figures, enforces none of them.

`server.protocol` enforces all but `sweep_s`, which is how often `server.sweeper` looks. A time
limit is therefore overrun by up to `sweep_s`.
"""

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Limits of the caller's leg.

    head_bytes_max: request line and fields together · fields_max: number of fields
    target_bytes_max: the request target · head_s: from a head's first byte (or from the accept,
    if no byte comes) to its end · body_progress_s: between two reads of a body
    keep_alive_s: an answered connection without a new byte; well above the 5 s after which the
    usual HTTP clients drop theirs, so that neither closes under the other's request
    chunk_framing_bytes_max: chunk extensions and trailers of one body together
    connections_max: served at once · write_stall_s: bytes wait and the caller reads none of them
    linger_s: after a refusal, how long unread bytes are taken and dropped, so that the refusal is
    not lost to a reset · discard_bytes_max: of a body whose answer is already out
    """

    head_bytes_max: int = 32 * 1024
    fields_max: int = 100
    target_bytes_max: int = 8 * 1024
    head_s: float = 10.0
    body_progress_s: float = 30.0
    keep_alive_s: float = 75.0
    chunk_framing_bytes_max: int = 4 * 1024
    connections_max: int = 2000
    write_stall_s: float = 60.0
    linger_s: float = 2.0
    discard_bytes_max: int = 1024 * 1024
    sweep_s: float = 0.25
