"""The table of settings agrees with itself, with the policies' defaults and with its page."""

from pathlib import Path

import pytest

from outlast.config.aliases import FILE_ALIASES, MEMBER_ALIASES
from outlast.config.key import Kind
from outlast.config.layers import built_in, candidate_policy, request_policy
from outlast.config.reference import render
from outlast.config.table import COLLECTIONS, FILE_SECTION, MEMBER_SECTION, POLICY, SECTIONS
from outlast.model.policy import CandidatePolicy, RequestPolicy

REPOSITORY = Path(__file__).parents[3]
KEYS = {(s.title, k.path): k for s in SECTIONS for k in s.keys.values()}


def test_the_tables_defaults_are_the_policies_defaults():
    defaults = built_in(POLICY)
    assert candidate_policy(defaults) == CandidatePolicy()
    assert request_policy(defaults) == RequestPolicy()


@pytest.mark.parametrize("place", KEYS)
def test_every_row_is_whole(place):
    key = KEYS[place]
    assert key.meaning.endswith((".", "?"))
    assert (key.kind in {Kind.WORD, Kind.WORDS, Kind.EXHAUSTED}) <= bool(key.words)
    assert key.built or key.only or key.inert, "a key that is not built says what means off"
    if key.kind not in {Kind.SECRET, Kind.SECRETS, Kind.SECRET_MAP, Kind.GROUP}:
        value = built_in([key]).value(key.path)
        assert key.only is None or value is None or value in key.only


def test_no_two_rows_of_a_section_have_one_path():
    for section in SECTIONS:
        for path in section.keys:
            parent = path.rpartition(".")[0]
            group = section.keys.get(parent)
            assert group is None or group.kind is Kind.GROUP, path


def test_every_alias_leads_to_a_key_and_hides_none():
    for aliases, section in ((FILE_ALIASES, FILE_SECTION), (MEMBER_ALIASES, MEMBER_SECTION)):
        for alias in aliases:
            known = section.knows(alias.canonical) or alias.canonical in section.elsewhere
            assert known or alias.canonical in COLLECTIONS, alias
            assert not section.knows(alias.written), alias


def test_the_reference_page_is_the_tables():
    page = REPOSITORY / "docs" / "reference" / "settings.md"
    assert page.read_text(encoding="utf-8") == render(), "run python -m outlast.config.reference"
