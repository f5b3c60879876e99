"""One call as the server hands it to the engine."""

from msgspec import Struct

from outlast.model.ids import RequestId
from outlast.ports import Headers


class Call(Struct, frozen=True):
    """A read request. `target` is the name from the path, which outranks the body's model."""

    request_id: RequestId
    dialect: str
    body: bytes
    headers: Headers
    target: str | None = None
