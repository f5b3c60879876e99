"""One call as its caller sent it, and what a dialect read off it."""

from collections.abc import Mapping

from msgspec import Raw, Struct


class NeutralRequest(Struct, frozen=True):
    """What every dialect can say about a request, with the caller's own bytes kept beside it.

    `members` are the top-level members of the body, each value's bytes untouched. `model` is the
    name asked for. `usage_asked`: a stream's caller wants the usage chunk.
    """

    dialect: str
    model: str
    stream: bool
    usage_asked: bool
    members: Mapping[str, Raw]
