import json

from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.model.request import NeutralRequest
from outlast.protocols.openai.stream import ChatStream

WATCHED = (
    "committed",
    "data_seen",
    "finished",
    "done",
    "refused",
    "progressed",
    "malformed",
    "fault",
    "usage",
)

texts = st.text(max_size=12) | st.sampled_from(
    [
        '"error"',
        '{"error":{"code":500}}',
        "data: [DONE]\n\n",
        '"finish_reason":"stop"',
        "\u2028\x85",
    ]
)
deltas = st.sampled_from([{}, {"role": "assistant", "content": ""}]) | texts.map(
    lambda text: {"content": text}
)
reasons = st.sampled_from([None, None, None, "stop", "content_filter"])
usages = st.sampled_from([None, {}, {"prompt_tokens": 3, "completion_tokens": 1}])
events = st.builds(
    lambda delta, reason, usage, ascii_only: json.dumps(
        {"id": "c", "choices": [{"delta": delta, "finish_reason": reason}], "usage": usage},
        ensure_ascii=ascii_only,
    ).encode("utf-8", "replace"),
    deltas,
    reasons,
    usages,
    st.booleans(),
)
odd = st.sampled_from(
    [
        b'{"choices":[],"usage":{"prompt_tokens":9}}',
        b'{"error":{"type":"server_error"}}',
        b"[DONE]",
        b"{}",
        b"{oops",
        b"5",
        b": ping",
        b"",
        b'{"choices":[{"delta":5}]}',
        b'{"x":"\xff"}',
    ]
)
openings = st.sampled_from(
    [b"data: "] * 8 + [b"data:", b"data:  ", b": c\ndata: ", b"id: 1\ndata: "]
)
endings = st.sampled_from([b"\n\n"] * 8 + [b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\n\n\n", b"\n", b""])
wire_frames = st.tuples(openings, events | events | events | odd, endings).map(b"".join)
streams = st.lists(wire_frames | st.just(b": c\n\n"), max_size=12).map(b"".join)


def read(chunks: list[bytes], *, usage_asked: bool) -> tuple[bytes, list[object]]:
    stream = ChatStream(
        NeutralRequest("openai", "m", stream=True, usage_asked=usage_asked, members={})
    )
    seen = b"".join(map(stream.feed, chunks)) + stream.close()
    return seen, [getattr(stream, name) for name in WATCHED]


@given(streams, st.sets(st.integers(0, 1500), max_size=12), st.booleans())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_any_split_gives_the_same_frames_and_events(data, at, usage_asked):
    points = sorted(point for point in at if point <= len(data))
    chunks = [data[a:b] for a, b in zip([0, *points], [*points, len(data)], strict=True)]
    assert read(chunks, usage_asked=usage_asked) == read([data], usage_asked=usage_asked)


@given(st.lists(wire_frames, max_size=8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_frame_by_frame_and_byte_by_byte_are_equal(frames):
    data = b"".join(frames)
    whole = read([data], usage_asked=True)
    assert read(frames, usage_asked=True) == whole
    assert read([bytes([byte]) for byte in data], usage_asked=True) == whole


@given(st.lists(texts, min_size=1, max_size=8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_text_can_look_like_an_error_or_an_end(words):
    frames = [
        b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\n\n"
        for word in ["x", *words]
    ]
    stream = ChatStream(NeutralRequest("openai", "m", stream=True, usage_asked=False, members={}))
    assert [stream.feed(frame) for frame in frames] == frames
    assert (stream.fault, stream.finished, stream.done, stream.usage) == (None, False, False, None)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_bytes_can_break_the_reading(data):
    _, watched = read([data], usage_asked=False)
    assert len(watched) == len(WATCHED)
