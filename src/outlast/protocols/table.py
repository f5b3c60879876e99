"""The dialects that are spoken, by name. A newcomer adds its folder and one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from outlast.protocols.dialect import Dialect
from outlast.protocols.openai import OPENAI

DIALECTS: Mapping[str, Dialect] = MappingProxyType({OPENAI.name: OPENAI})
