"""Consumers of facts: metrics and log lines."""
