from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.protocols.framing import Frame, SseFramer

pieces = st.sampled_from(
    b"data: a,data:b,data,: c,event: e,id: 1,x,\xef\xbb\xbf,\n,\r,\r\n,\n\n,"
    b"\xe2\x80\xa8,\xc2\x85,:, ".split(b",")
)
streams = st.lists(pieces, max_size=30).map(b"".join) | st.binary(max_size=60)


def frames(chunks: list[bytes]) -> list[Frame]:
    framer = SseFramer()
    return [frame for chunk in chunks for frame in framer.feed(chunk)] + framer.close()


def cut(data: bytes, at: set[int]) -> list[bytes]:
    points = sorted(point for point in at if point <= len(data))
    return [data[a:b] for a, b in zip([0, *points], [*points, len(data)], strict=True)]


@given(streams, st.sets(st.integers(0, 120), max_size=10))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_any_split_gives_the_same_frames(data, at):
    assert frames(cut(data, at)) == frames([data])


@given(streams)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_byte_by_byte_gives_the_same_frames(data):
    assert frames([bytes([byte]) for byte in data]) == frames([data])


@given(streams)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_what_we_write_reads_back_as_itself(data):
    kept = [frame for frame in frames([data]) if frame.wire()]
    assert frames([frame.wire() for frame in kept]) == kept


@given(streams)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_kind_of_line_end_changes_nothing(data):
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert frames([text.replace(b"\n", b"\r\n")]) == frames([text])
    assert frames([text.replace(b"\n", b"\r")]) == frames([text])
