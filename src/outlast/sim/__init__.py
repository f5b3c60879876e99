"""Simulated providers, virtual time and seeded worlds."""
