"""`NeutralRequest` -> body of a chat completion request, and the header that carries the key.

Decides what may differ from what the caller sent: the model's name, and the wish for a usage
chunk, which a stream always gets because tokens are counted (the reader withholds that chunk from
a caller who did not ask). All other members keep their bytes and their order.
"""

import msgspec
from msgspec import Raw

from outlast.model.request import NeutralRequest

_encode = msgspec.json.Encoder().encode
_options = msgspec.json.Decoder(dict[str, Raw] | None).decode

_TRUE = Raw(b"true")
_USAGE_ONLY = Raw(b'{"include_usage":true}')


def encode_request(request: NeutralRequest, upstream_model: str) -> bytes:
    """Spell the request for one provider."""
    members = dict(request.members)
    members["model"] = Raw(_encode(upstream_model))
    if request.stream and not request.usage_asked:
        members["stream_options"] = _with_usage(members.get("stream_options"))
    return _encode(members)


def _with_usage(given: Raw | None) -> Raw:
    options = None if given is None else _options(given)
    if not options:
        return _USAGE_ONLY
    options["include_usage"] = _TRUE
    return Raw(_encode(options))


def bearer(secret: str | None) -> tuple[tuple[bytes, bytes], ...]:
    """Spell the credential (RFC 6750, section 2.1). A provider without one gets no header."""
    if secret is None:
        return ()
    return ((b"authorization", b"Bearer " + secret.encode()),)
