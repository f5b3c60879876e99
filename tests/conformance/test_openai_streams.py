"""Every case file of the openai dialect: see README.md for the format."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.model.request import NeutralRequest
from outlast.protocols.dialect import StreamReader
from outlast.protocols.openai import OPENAI

CASES = sorted((Path(__file__).parent / "cases" / "openai").glob("*.case"))
ROUTING = b'{"strategy":"order","selected_provider":"P","failovers":1,"attempts":2}'

paths = pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)


class Case(NamedTuple):
    request: NeutralRequest
    routing: bytes | None
    upstream: bytes
    caller: bytes
    events: dict[str, str]


def load(path: Path) -> Case:
    pieces = re.split(r"^==== (\w+)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    assert list(sections) == ["request", "upstream", "caller", "events"]
    words = sections["request"].split()
    assert set(words) <= {"usage", "routing"}
    return Case(
        NeutralRequest("openai", "m", stream=True, usage_asked="usage" in words, members={}),
        ROUTING if "routing" in words else None,
        unescaped(sections["upstream"]),
        unescaped(sections["caller"]),
        dict(line.split(": ", 1) for line in sections["events"].splitlines()),
    )


def unescaped(section: str) -> bytes:
    section = re.sub(r"<end>\n\Z", "", section)
    return re.sub(
        rb"<([0-9A-F]{2})>", lambda found: bytes.fromhex(found[1].decode()), section.encode()
    )


def read(case: Case, chunks: list[bytes]) -> tuple[bytes, dict[str, str]]:
    reader = OPENAI.reader(case.request)
    reader.routing = case.routing
    seen = b"".join(reader.feed(chunk) for chunk in chunks)
    return seen + reader.close(), events(reader)


def events(reader: StreamReader) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("committed", "data_seen", "finished", "done", "refused"):
        if getattr(reader, name):
            found[name] = "true"
    for name in ("progressed", "malformed"):
        if getattr(reader, name):
            found[name] = str(getattr(reader, name))
    if reader.usage is not None:
        used = reader.usage
        found["usage"] = (
            f"{used.input_tokens} {used.output_tokens} {used.cached_tokens} {used.reasoning_tokens}"
        )
    if reader.fault is not None:
        status = "" if reader.fault.status is None else f" {reader.fault.status}"
        found["fault"] = reader.fault.kind.value + status
    return found


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@paths
def test_a_stream_read_whole_is_what_its_case_says(path):
    case = load(path)
    assert read(case, [case.upstream]) == (case.caller, case.events)


@paths
def test_a_stream_read_byte_by_byte_is_what_its_case_says(path):
    case = load(path)
    assert read(case, bytewise(case.upstream)) == (case.caller, case.events)


@paths
def test_a_stream_cut_in_two_anywhere_is_what_its_case_says(path):
    case = load(path)
    expected = (case.caller, case.events)
    for at in range(1, len(case.upstream)):
        assert read(case, [case.upstream[:at], case.upstream[at:]]) == expected, at


@paths
def test_a_stream_read_line_by_line_is_what_its_case_says(path):
    case = load(path)
    assert read(case, case.upstream.splitlines(keepends=True)) == (case.caller, case.events)


@given(st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_stream_read_in_chance_pieces_is_what_its_case_says(data):
    case = load(data.draw(st.sampled_from(CASES)))
    size = len(case.upstream)
    cuts = sorted(data.draw(st.sets(st.integers(0, size), max_size=8)))
    chunks = [case.upstream[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    assert read(case, chunks) == (case.caller, case.events)


def test_case_files_are_numbered_without_gaps():
    assert [int(path.stem.split("-")[0]) for path in CASES] == list(range(1, len(CASES) + 1))
    assert len(CASES) >= 30
