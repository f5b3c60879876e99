"""A link belongs to one request."""

from outlast.server.link import CallerLink


class Line:
    def __init__(self) -> None:
        self.done: list[str] = []

    def cut(self) -> None:
        self.done.append("cut")

    def answer(self, status, headers, body) -> bool:
        self.done.append(f"answer {status}")
        return True

    def close_with(self, status, headers, body) -> None:
        self.done.append(f"close {status}")


def test_a_loss_is_told_once():
    told: list[int] = []
    link = CallerLink(Line())
    link.on_lost(lambda: told.append(1))
    assert told == []
    link.lose()
    link.lose()
    assert told == [1]
    assert link.lost


def test_a_released_link_neither_tells_nor_acts():
    told: list[int] = []
    line = Line()
    link = CallerLink(line)
    link.on_lost(lambda: told.append(1))
    link.release()
    link.lose()
    link.abort()
    link.close_with(413, [], b"")
    assert told == []
    assert line.done == []


def test_a_live_link_acts_on_its_line():
    line = Line()
    link = CallerLink(line)
    link.close_with(413, [], b"")
    link.abort()
    assert line.done == ["close 413", "cut"]


def test_an_answer_goes_to_the_line_while_there_is_one():
    line = Line()
    link = CallerLink(line)
    assert link.answer(200, [], b"x")
    assert line.done == ["answer 200"]
    link.release()
    assert not link.answer(200, [], b"x")
    assert line.done == ["answer 200"]
