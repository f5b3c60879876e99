"""What the case files of tests/conformance cannot say: identity, sizes, calls after the end."""

import pytest

from outlast.model.fault import FaultKind
from outlast.model.request import NeutralRequest
from outlast.protocols.framing import EVENT_BYTES_MAX
from outlast.protocols.openai.stream import ChatStream


def content(text: str) -> bytes:
    return b'data: {"id":"c","choices":[{"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % (
        text.encode()
    )


STOP = b'data: {"id":"c","choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
ERROR = b'data: {"error":{"type":"server_error"}}\n\n'


def committed() -> ChatStream:
    stream = ChatStream(NeutralRequest("openai", "m", stream=True, usage_asked=False, members={}))
    assert stream.feed(content("first")) == content("first")
    assert stream.committed
    return stream


@pytest.mark.parametrize("count", [1, 2, 50])
def test_uneventful_frames_are_returned_as_the_object_that_came(count):
    stream = committed()
    data = content("x") * count
    assert stream.feed(data) is data
    assert stream.progressed == 1 + count


def test_whole_frames_between_two_cut_ones_pass():
    stream = committed()
    data = content("a") + content("b") * 3 + content("c")
    seen = [stream.feed(data[:20]), stream.feed(data[20:-20]), stream.feed(data[-20:])]
    assert seen == [b"", data[: -len(content("c"))], content("c")]
    assert stream.progressed == 6


def test_an_end_in_the_first_part_of_a_chunk_silences_the_rest():
    stream = committed()
    stream.feed(STOP[:20])
    assert stream.feed(STOP[20:] + b"data: [DO") == STOP
    assert stream.feed(b"NE]\n\n" + content("late") + content("later")[:9]) == b"data: [DONE]\n\n"
    assert stream.done


def test_an_error_in_the_first_part_of_a_chunk_silences_the_rest():
    stream = committed()
    stream.feed(ERROR[:20])
    assert stream.feed(ERROR[20:] + content("late") + content("later")[:9]) == b""
    assert stream.fault is not None
    assert stream.feed(content("later still")) == b""
    assert stream.close() == b""
    assert stream.fault.kind is FaultKind.PROVIDER_5XX


def test_a_missing_terminal_is_added_once():
    stream = committed()
    stream.feed(STOP)
    assert stream.close() == b"data: [DONE]\n\n"
    assert stream.fault is None


def test_nothing_is_added_after_the_terminal_event():
    stream = committed()
    stream.feed(STOP + b"data: [DONE]\n\n")
    assert stream.feed(content("late")) == b""
    assert stream.close() == b""
    assert stream.fault is None


def test_an_event_over_the_limit_is_malformed_and_ends_the_reading():
    stream = committed()
    assert stream.feed(content("ok") + content("x" * EVENT_BYTES_MAX)) == content("ok")
    assert stream.fault is not None
    assert stream.fault.kind is FaultKind.MALFORMED_RESPONSE
    assert stream.close() == b""


def test_an_error_before_an_overlong_event_is_what_counts():
    stream = committed()
    assert stream.feed(ERROR + content("x" * EVENT_BYTES_MAX)) == b""
    assert stream.fault is not None
    assert stream.fault.kind is FaultKind.PROVIDER_5XX


def test_many_small_events_pass_however_large_their_chunk():
    stream = committed()
    data = content("x" * 1000) * (EVENT_BYTES_MAX // 1000 + 1)
    assert stream.feed(data) == data
    assert stream.fault is None


def test_an_event_that_is_nested_too_deeply_is_dropped():
    stream = committed()
    assert stream.feed(b'data: {"x":' + b"[" * 5000 + b"]" * 5000 + b"}\n\n") == b""
    assert stream.malformed == 1


def test_a_line_of_json_that_hides_behind_extra_blank_lines_is_found():
    stream = committed()
    a, b, c = (content(letter)[:-2] for letter in "abc")
    assert stream.feed(a + b"\n" + b[6:] + b"\n\n\n" + c + b"\n\n") == content("a") + content("c")


def test_a_carriage_return_between_json_tokens_is_not_passed_by():
    stream = committed()
    assert stream.feed(b'data: {"id":"c",\r"choices":[]}\n\n') == b""
    assert stream.malformed == 1


def test_extra_blank_lines_are_not_passed_by():
    stream = committed()
    assert stream.feed(content("a") + b"\n" + content("b")) == content("a") + content("b")


def test_a_frame_that_was_begun_is_not_overtaken():
    stream = committed()
    assert stream.feed(b": c\n") == b""
    assert stream.feed(content("a")) == b": c\n" + content("a")


def test_a_refusal_of_one_choice_is_not_forgotten():
    stream = committed()
    stream.feed(STOP.replace(b"stop", b"content_filter") + STOP)
    assert stream.refused
