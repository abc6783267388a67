"""Every statement of the PostgreSQL backend fits its schema, and each of SQLite's has one or needs none."""

from __future__ import annotations

import asyncio
import re

import pytest

from ricordo.storage.database.history import truth_of
from ricordo.storage.database.statements import statements as of_sqlite
from ricordo.storage.sql import named_statements
from tests.storage.making import opened

pytest.importorskip("psycopg", reason="`make postgres` installs the client library")

from ricordo.storage.postgres.connection import statements

STATEMENTS = statements()
OWN = {
    name
    for name in STATEMENTS
    if re.match(
        r"words_(?!erase|blank)|slots_(drop|put)|traits_put|nodes_(all|following)|\w+_(occurring|guarded)|roles_seeing"
        r"|entities_named|own_space|postings_of|(traits|linked|word_vectors)_around|traits_whole",
        name,
    )
}
OF_FILES = {
    "backup_erased",
    "backup_ids",
    "backup_question",
    "commit_last_seq",
    "commits_by_hand",
    "commit_line",
    "commits_after",
    "exchanged_forget_names",
    "embedding_pairs",
    "erasures_since",
    "history_of_commit",
    "history_put",
    "history_whole",
    "node_remains",
    "relations_to_link_forget",
    "schema_column_kinds",
    "schema_text",
    "sequences",
    "session_names",
    "space_of_gone",
    "spaces_all_by_key",
    "touched_forget",
    "touched_rows",
    "touched_table",
    "vector_gone",
    "vector_lines",
    "vector_put",
    "vector_remove",
    "vector_source",
    "whole_commits",
    "whole_history",
    "whole_size",
    "whole_vectors",
}
DERIVED_IN_SQLITE = {
    "features_clear",
    "features_fill",
    "nodes_archive_again",
    "nodes_traits_again",
    "pack_insert",
    "pages_off",
    "schema_views",
    "slots_clear",
    "slots_fill",
    "slots_off",
    "sum_put",
    "sums_all",
    "text_archive_clear",
    "text_archive_fill",
    "text_index_off",
    "text_live_clear",
    "text_live_fill",
    "word_parts",
    "word_parts_join",
}
TEMPORARY = re.compile(r"^CREATE TEMP|as_of\(\)|past_altered\b|past_renamed\b|past_links\b", re.MULTILINE)


def test_each_statement_of_sqlite_has_a_partner_or_needs_none():
    assert of_sqlite().keys() - STATEMENTS.keys() == OF_FILES | DERIVED_IN_SQLITE
    assert STATEMENTS.keys() - of_sqlite().keys() == OWN


def test_a_statement_that_is_worded_alike_is_shared():
    own = named_statements("ricordo.storage.postgres", "queries")
    alike = {name for name, text in own.items() if text.split() == of_sqlite().get(name, "").split()}
    assert alike == set()


@pytest.mark.parametrize("name", sorted(STATEMENTS))
async def test_a_statement_fits_the_schema(name, shared_store):
    text = shared_store.location.worded(STATEMENTS[name])
    if TEMPORARY.search(text):
        pytest.skip("needs temporary tables; the tests of the past run it")
    await shared_store.derive(lambda tx: tx.connection.execute(f"EXPLAIN (GENERIC_PLAN) {numbered(text)}"))


def numbered(text: str) -> str:
    """Return a statement with the placeholders of the server: the same for the same parameter."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = f"mark {found.start()}" if found[0] == "?" else found[0]
        return f"${numbers.setdefault(name, len(numbers) + 1)}"

    return re.sub(r"(?<![:\w]):[a-z_]\w*|\?\d*", number, text)


async def test_the_truth_has_the_columns_keys_and_references_of_sqlite(tmp_path, shared_store):
    async def asked(store):
        return await store.read(lambda tx: truth_of(tx.connection))

    mine = await asked(shared_store)
    theirs = await asyncio.to_thread(opened, tmp_path / "me.db", asked)
    assert {name: (table.columns, table.key) for name, table in mine.tables.items()} == {
        name: (table.columns, table.key) for name, table in theirs.tables.items()
    }
    kept = {each for each in theirs.references if each.table not in ("packs",)}
    assert kept <= set(mine.references)
