"""Outlast: a self-hosted LLM gateway that outlasts a provider's bad hour."""

__version__ = "0.1.0"
