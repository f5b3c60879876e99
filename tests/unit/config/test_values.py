"""How single values are spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlast.config.key import Key, Kind, Scope
from outlast.config.values import parse, parse_duration, parse_size, spell


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200ms", 0.2),
        ("2s", 2.0),
        ("1m30s", 90.0),
        ("1.5s", 1.5),
        ("24h", 86400.0),
        ("1d", 86400.0),
        (3, 3.0),
        (0.25, 0.25),
        ("0s", 0.0),
    ],
)
def test_durations_are_seconds(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    ["", "2", "s", "2 s", "-2s", "1y", "2s ", "1e3s", True, None, [], float("nan"), -1, "9" * 40],
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_a_duration_beyond_a_year_is_refused():
    with pytest.raises(ValueError, match="at most a year"):
        parse_duration("400d")


@pytest.mark.parametrize(
    ("text", "size"), [("32MiB", 32 * 2**20), ("1KB", 1000), (77, 77), ("12", 12), ("1 GiB", 2**30)]
)
def test_sizes_are_bytes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["MiB", "1.5MiB", -1, 1.5, True, None, "1mib"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@given(st.integers(1, 10**9))
def test_a_duration_reads_back_as_it_is_spelled(milliseconds):
    key = Key("k", Kind.DURATION, None, Scope.FILE, "")
    seconds = milliseconds / 1000
    assert parse_duration(spell(key, seconds)) == pytest.approx(seconds, rel=1e-5)


def test_zero_means_off_only_where_the_table_says_so():
    off = Key("k", Kind.DURATION, None, Scope.FILE, "", null=True, zero_off=True, at_least=0)
    limit = Key("k", Kind.DURATION, None, Scope.FILE, "", null=True, above=0)
    assert parse(off, "0s") is None
    assert parse(limit, None) is None
    with pytest.raises(ValueError, match="null turns it off"):
        parse(limit, "0s")


def test_control_characters_are_refused_in_strings():
    with pytest.raises(ValueError, match="control"):
        parse(Key("k", Kind.STRING, None, Scope.FILE, ""), "a\x00b")
