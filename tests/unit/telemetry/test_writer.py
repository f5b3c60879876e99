"""The line writer: order kept, the caller never blocked, every lost line counted."""

import os
import sys
import threading

import pytest
from tests.unit.telemetry.streams import WAIT_S, Broken, Kept, Reluctant, Stuck, Timers

from outlast.telemetry.writer import CHUNKS_MAX, FLUSH_BYTES, LineWriter, standard_error


def test_lines_are_gathered_until_the_timer_fires():
    stream, timers = Kept(), Timers()
    writer = LineWriter(stream, timers)
    writer.write(b"one\n")
    writer.write(b"two\n")
    assert len(timers.armed) == 1
    assert stream.data == b""
    timers.fire()
    writer.write(b"three\n")
    assert len(timers.armed) == 1
    writer.close()
    assert stream.lines == [b"one", b"two", b"three"]


def test_a_full_buffer_does_not_wait_for_the_timer():
    stream, timers = Stuck(), Timers()
    writer = LineWriter(stream, timers)
    writer.write(b"x" * (FLUSH_BYTES - 1))
    assert not stream.entered.is_set()
    writer.write(b"\n")
    assert stream.entered.wait(WAIT_S)
    stream.let_go.set()
    assert all(timer.cancelled for timer in timers.armed)
    writer.close()
    assert len(stream.data) == FLUSH_BYTES


def test_without_a_loop_each_line_is_handed_over_at_once():
    stream = Stuck()
    writer = LineWriter(stream)
    writer.write(b"early\n")
    assert stream.entered.wait(WAIT_S)
    stream.let_go.set()
    writer.close()


def test_a_stream_that_takes_little_at_a_time_gets_everything():
    stream = Reluctant()
    writer = LineWriter(stream)
    writer.write(b"a longer line\n")
    writer.close()
    assert stream.data == b"a longer line\n"


def test_a_broken_pipe_is_counted_and_not_raised():
    writer = LineWriter(Broken(), Timers())
    writer.write(b"1\n")
    writer.write(b"2\n")
    writer.close()
    assert writer.dropped == 2


def test_a_real_pipe_without_a_reader_is_counted_and_not_raised():
    reader, fd = os.pipe()
    os.close(reader)
    with os.fdopen(fd, "wb", buffering=0) as stream:
        writer = LineWriter(stream)
        writer.write(b"1\n")
        writer.close()
    assert writer.dropped == 1


def test_a_stream_that_is_not_ready_is_counted_and_not_spun_on():
    class NotReady:
        def write(self, data: memoryview, /) -> None:
            return None

    writer = LineWriter(NotReady())
    writer.write(b"1\n")
    writer.close()
    assert writer.dropped == 1


def test_a_stuck_stream_blocks_nobody_and_loses_the_newest():
    stream = Stuck()
    writer = LineWriter(stream)
    writer.write(b"first\n")
    assert stream.entered.wait(WAIT_S)
    for number in range(CHUNKS_MAX + 3):
        writer.write(b"%d\n" % number)
    assert writer.dropped == 3
    writer.close(wait_s=0.01)
    stream.let_go.set()


def test_a_line_after_the_end_is_counted():
    writer = LineWriter(Kept())
    writer.close()
    writer.close()
    writer.write(b"late\n")
    assert writer.dropped == 1


def test_the_thread_ends_with_the_writer():
    before = set(threading.enumerate())
    writer = LineWriter(Kept())
    (thread,) = set(threading.enumerate()) - before
    writer.close()
    assert not thread.is_alive()


def test_standard_error_is_the_real_one_and_stays_open(monkeypatch: pytest.MonkeyPatch):
    reader, fd = os.pipe()
    with os.fdopen(fd, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        stream = standard_error()
        assert stream.write(memoryview(b"x\n")) == 2
        del stream
        pipe.write(b"y\n")
    assert os.read(reader, 10) == b"x\ny\n"
    os.close(reader)


def test_lines_that_are_spelled_later_keep_their_place():
    stream = Kept()
    writer = LineWriter(stream, Timers())
    spelled: list[str] = []

    def spell() -> bytes:
        spelled.append("second")
        return b"second\n"

    writer.write(b"first\n")
    writer.write_later(spell)
    writer.write(b"third\n")
    assert spelled == []
    writer.close()
    assert stream.data == b"first\nsecond\nthird\n"
    writer.write_later(spell)
    assert (writer.dropped, spelled) == (1, ["second"])
