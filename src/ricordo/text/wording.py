"""Wording of messages."""

from __future__ import annotations


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: "1 row", "2 rows"."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
