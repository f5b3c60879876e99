"""Obeys the decisions: one request from its bytes to its last byte."""
