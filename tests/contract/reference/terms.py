"""The terms by which a memory is found: those of its text, its tags and its speaker."""

from __future__ import annotations

from ricordo.text.analyzer import index_terms
from tests.contract.reference.tables import Row


def all_terms_of(row: Row) -> list[str]:
    """Return the index terms of a row of `nodes`, repeats included."""
    return [*index_terms(row["content"]), *besides(row)]


def besides(row: Row) -> list[str]:
    """Return the index terms of the tags and the speaker of a row of `nodes`, repeats included."""
    tags = [term for tag in row["tags"] for term in index_terms(tag)]
    return [*tags, *index_terms(row["speaker"] or "")]


def terms_of(row: Row) -> set[str]:
    """Return the index terms of a row of `nodes`."""
    return set(all_terms_of(row))
