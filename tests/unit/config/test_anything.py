"""Whatever a file holds, reading it ends in a configuration or in a `ConfigError`."""

from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outlast.config.load import parse_config
from outlast.config.table import COLLECTIONS, SECTIONS
from outlast.errors import ConfigError

SECTION_WORDS = sorted({part for s in SECTIONS for path in s.keys for part in path.split(".")})
WORDS = [
    *SECTION_WORDS,
    *COLLECTIONS,
    "models",
    "members",
    "model",
    "breaker",
    "trip",
    "env",
    "file",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([*WORDS, "openai", "http://127.0.0.1/v1", "2s", "${X}", "503", "\x00"]),
)
NAMES = st.one_of(st.sampled_from(WORDS), st.text(max_size=6), st.integers())
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=6)),
    max_leaves=25,
)
FILES = st.dictionaries(NAMES, TREES, max_size=6)
PLACES = st.fixed_dictionaries(
    {},
    optional={
        name: st.dictionaries(st.sampled_from("abc"), TREES, max_size=3) for name in COLLECTIONS
    },
)


def read(data):
    try:
        parse_config(data, {"X": "secret-of-x"}, folder=Path("/nonexistent"))
    except ConfigError as error:
        problems = error.problems
    else:
        return
    assert problems
    assert "secret-of-x" not in repr(problems)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(FILES, PLACES)
def test_any_nested_values_end_in_a_config_error_at_worst(tree, places):
    read(yaml.safe_dump({**tree, **places}, allow_unicode=True).encode("utf-8", "surrogatepass"))


@settings(deadline=None, max_examples=150)
@given(st.one_of(st.binary(max_size=60), st.text("{}[]:,&*!|>'\"#-? \n\tab\\xU0", max_size=60)))
def test_any_bytes_end_in_a_config_error_at_worst(data):
    read(data.encode() if isinstance(data, str) else data)
