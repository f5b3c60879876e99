"""What an answer consumed, in tokens."""

from msgspec import Struct


class Usage(Struct, frozen=True):
    """Token counts of one answer as its provider reports them.

    Buckets overlap as in the OpenAI convention: `input_tokens` includes `cached_tokens`,
    `output_tokens` includes `reasoning_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
