from outlast.protocols.framing import EVENT_BYTES_MAX, Frame, SseFramer


def test_a_frame_is_spelled_with_lf_and_one_space():
    assert Frame(b"", b"x").wire() == b"data: x\n\n"


def test_a_payload_of_several_lines_keeps_its_lines():
    assert Frame(b"event: e\n", b"x\ny").wire() == b"event: e\ndata: x\ndata: y\n\n"


def test_a_comment_is_spelled_alone():
    assert Frame(b": hi\n", None).wire() == b": hi\n\n"


def test_a_frame_of_which_nothing_is_left_is_no_bytes():
    [frame] = SseFramer().feed(b"id: 7\nretry: 3\n\n")
    assert frame == Frame(b"", None)
    assert frame.wire() == b""


def test_a_line_without_a_colon_is_a_name_without_a_value():
    assert SseFramer().feed(b"data\ndata\n\n") == [Frame(b"", b"\n")]


def test_an_lf_that_arrives_after_its_cr_ends_no_second_line():
    framer = SseFramer()
    assert framer.feed(b"data: a\r") == []
    assert framer.feed(b"\ndata: b\r\n\r") == [Frame(b"", b"a\nb")]
    assert framer.feed(b"\n") == []


def test_a_framer_is_idle_only_between_frames():
    framer = SseFramer()
    seen = [framer.idle]
    for piece in (b"data: a", b"\n", b"\n", b": c\r\n\r", b"\n"):
        framer.feed(piece)
        seen.append(framer.idle)
    assert seen == [False, False, False, True, False, True]


def test_no_bytes_change_nothing():
    framer = SseFramer()
    framer.feed(b"data: a\n\n")
    assert framer.feed(b"") == []
    assert framer.idle


def test_half_a_byte_order_mark_at_the_end_is_no_frame_with_data():
    framer = SseFramer()
    assert framer.feed(b"\xef\xbb") == []
    assert framer.close() == [Frame(b"", None)]


def test_a_last_frame_without_its_blank_line_is_found_at_the_end():
    framer = SseFramer()
    assert framer.feed(b"data: a\ndata: b") == []
    assert framer.close() == [Frame(b"", b"a\nb")]


def test_the_end_of_a_well_ended_stream_adds_nothing():
    framer = SseFramer()
    framer.feed(b"data: a\n\n")
    assert framer.close() == []


def test_the_largest_frame_passes():
    payload = b"x" * (EVENT_BYTES_MAX - len(b"data: "))
    framer = SseFramer()
    [frame] = framer.feed(b"data: " + payload + b"\n\n")
    assert frame.data == payload
    assert not framer.overflow


def test_a_line_over_the_limit_is_refused_before_it_ends():
    framer = SseFramer()
    assert framer.feed(b"data: a\n\ndata: " + b"x" * EVENT_BYTES_MAX) == [Frame(b"", b"a")]
    assert framer.overflow
    assert framer.feed(b"\n\ndata: b\n\n") == []
    assert framer.close() == []


def test_a_whole_line_over_the_limit_is_refused_too():
    framer = SseFramer()
    assert framer.feed(b"data: " + b"x" * EVENT_BYTES_MAX + b"\n\ndata: b\n\n") == []
    assert framer.overflow


def test_many_short_lines_count_together():
    framer = SseFramer()
    lines = EVENT_BYTES_MAX // 1024 + 1
    assert framer.feed(b"".join(b":" + b"x" * 1022 + b"\n" for _ in range(lines))) == []
    assert framer.overflow


def test_the_limit_is_of_one_frame_and_not_of_the_stream():
    framer = SseFramer()
    half = b"data: " + b"x" * (EVENT_BYTES_MAX // 2) + b"\n\n"
    assert [len(framer.feed(half)) for _ in range(3)] == [1, 1, 1]
