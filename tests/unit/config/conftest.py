"""A configuration with one hosted and one local provider, to be added to."""

from pathlib import Path

import pytest

from outlast.config.load import parse_config

BASE = """
providers:
  openai: {dialect: openai, base_url: https://api.openai.com/v1, api_key: {env: KEY}%s}
  local: {dialect: openai, base_url: http://127.0.0.1:8000/v1}
deployments:
  a: {provider: openai, upstream_model: gpt-5, serves: big/m%s}
  b: {provider: local, upstream_model: gpt-5, serves: big/m}
"""


@pytest.fixture
def configured(tmp_path):
    """Reads text beside two providers; `provider` and `deployment` add keys to `openai`, `a`."""

    def read(text="", *, provider="", deployment="", env=None, insecure=False):
        data = (BASE % (provider, deployment)) + text
        env = {"KEY": "sk-0001", **(env or {})}
        return parse_config(data.encode(), env, folder=Path(tmp_path), insecure=insecure)

    return read
