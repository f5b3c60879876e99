import pytest

from outlast.protocols.table import DIALECTS


def test_every_dialect_stands_under_its_own_name():
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {"openai": "openai"}


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        DIALECTS["other"] = DIALECTS["openai"]  # type: ignore[index]


def test_no_forwarded_header_can_carry_a_secret():
    for dialect in DIALECTS.values():
        assert not dialect.forward & {b"authorization", b"x-api-key", b"api-key", b"cookie"}
        assert all(name == name.lower() for name in dialect.forward)
