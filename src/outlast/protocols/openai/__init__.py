"""The `openai` dialect: chat completions.

`OPENAI` is its table of functions; nothing else leaves this package. Request headers that a caller
may hand on to the provider are the three that choose among its accounts and features; none of them
is a secret.
"""

from outlast.protocols.dialect import Dialect
from outlast.protocols.openai.answer import read_models, read_whole, splice_routing
from outlast.protocols.openai.decode import decode_request
from outlast.protocols.openai.encode import bearer, encode_request
from outlast.protocols.openai.failure import error_body, in_band
from outlast.protocols.openai.faults import read_error
from outlast.protocols.openai.stream import ChatStream

OPENAI = Dialect(
    name="openai",
    path="/chat/completions",
    models_path="/models",
    decode=decode_request,
    encode=encode_request,
    auth=bearer,
    forward=frozenset({b"openai-organization", b"openai-project", b"openai-beta"}),
    reader=ChatStream,
    read_whole=read_whole,
    read_error=read_error,
    read_models=read_models,
    splice_routing=splice_routing,
    error_body=error_body,
    in_band=in_band,
)

__all__ = ["OPENAI"]
