"""The limits of the leg to the provider, each with its reason. Owns numbers, no behaviour.

Timeouts are not here: they belong to a candidate's policy and come with each call.
"""

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Every bound of one client.

    idle_per_origin_max: idle connections kept per (scheme, host, port); the oldest goes first.
    idle_expiry_s: an idle connection older than this is closed: providers close theirs after 60 s
        and more, so ours is gone before a reuse can race with it.
    connections_max: open and opening connections together; idle ones give way first.
    head_bytes_max: bytes until the final response head is complete, interim heads included.
    head_fields_max: fields of one head, and trailer fields of one body.
    chunk_overhead_bytes_max: chunk extensions and trailers, see `response.Response`.
    interim_max: 1xx answers before the final one.
    request_heads_max: validated request heads kept ready.
    """

    idle_per_origin_max: int = 64
    idle_expiry_s: float = 55.0
    connections_max: int = 2_000
    head_bytes_max: int = 64 * 1024
    head_fields_max: int = 100
    chunk_overhead_bytes_max: int = 4 * 1024
    interim_max: int = 16
    request_heads_max: int = 512


STANDARD = Limits()
