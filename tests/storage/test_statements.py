"""Every statement compiles, is used, and scans no whole table if it is on a hot path."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ricordo
from ricordo.model import Scope
from ricordo.storage.database.as_of import past
from ricordo.storage.database.connection import connect
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import sql, statements
from ricordo.storage.registry import open_store
from ricordo.storage.sql import named_statements
from ricordo.storage.values import Filter

SOURCE = Path(ricordo.__file__).parent

HOT = (
    "node_by_id",
    "nodes_by_key",
    "session_by_id",
    "windows",
    "traits_of",
    "turns_position",
    "sessions_grown",
    "word_vectors_of",
    "lacking",
    "history_of_row",
    "history_touched",
    "commit_at",
    "commit_upto",
    "commit_first",
    "commits_of_run",
    "edges_of_node",
    "names_in_node",
    "replaced_by_node",
    "replacing_node",
    "embeddings_of",
    "embeddings_new",
    "history_of_node",
    "commits_listed",
    "node_place",
    "node_ids_known",
    "entities_by_key",
    "names_like",
    "names_known",
    "entity_members",
    "entity_span",
    "relations_of_owner",
    "relations_of_entity",
    "subjects_latest",
    "mentions_latest",
    "named_together",
    "entity_key_by_id",
    "slots_near",
    "succession",
    "subjects_of",
    "review_by_id",
    "reviews_against",
    "unlinked",
    "removals_new",
    "packs_of",
    "entity_near",
    "linked_to",
    "causes_and_effects",
    "associates_of",
    "reinforced_since",
    "usage_of",
    "lines_of",
    "superseded_by",
    "commit_of_node",
    "node_contents",
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "memory.db"
    open_store(path).close()
    connection = connect(path, patience_s=1)
    connection.execute(sql("touched_table"))  # internal notes of a folder's writer
    yield connection
    connection.close()


def plan_of(connection, text, values):
    """Return SQLite's query plan, one line per step."""
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def compiled(connection, text):
    """Compile the statement without binding parameters."""
    return list(connection.execute(f"EXPLAIN {text}", _bindings(text)))


def _bindings(text):
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    if numbered:
        return [None] * max(numbered)
    return [None] * text.count("?") if "?" in text else dict.fromkeys(re.findall(r":(\w+)", text))


@pytest.fixture(scope="module")
def past_connection(connection):
    """A connection on which past states cover today's tables, as for `as_of` statements."""
    shadowed = connect(Path(connection.filename), read_only=True, patience_s=1)
    with past(shadowed, DatabaseSnapshot(connection), commit=0, at=0, links=lambda *_: []):
        yield shadowed


@pytest.mark.parametrize("name", sorted(statements()))
def test_a_statement_compiles_against_a_fresh_schema(connection, past_connection, name):
    assert compiled(past_connection if name.startswith("past_") else connection, sql(name))


def test_every_statement_is_used_and_defined():
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert statements().keys() - set(re.findall(r"""(?<=['"])\w+(?=['"])""", source)) == set()
    asked = set(re.findall(r'(?:sql|\.rows|\.value|counts)\(\s*"(\w+)"', source))
    assert asked - statements().keys() - named_statements("ricordo.storage.postgres", "queries").keys() == set()


def test_every_statement_is_described_or_trivial():
    for name, text in statements().items():
        assert text.startswith("--") or len(text) < 700, name


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_scans_no_table(connection, name):
    steps = plan_of(connection, sql(name), _bindings(sql(name)))
    innocent = r"json_each|chain|older|newer|walked|\(subquery-\d+\)|CONSTANT ROW"
    assert [step for step in steps if step.startswith("SCAN") and not re.search(innocent, step)] == [], steps


LARGE = ("nodes", "embeddings", "edges", "subjects", "found_mentions", "history", "commits", "turns")


@pytest.mark.parametrize("name", sorted(name for name in statements() if not name.startswith("past_")))
def test_no_statement_scans_a_large_table_for_each_row_of_another(connection, name):
    steps = list(connection.execute(f"EXPLAIN QUERY PLAN {sql(name)}", _bindings(sql(name))))
    parents = {step: (parent, said) for step, parent, _, said in steps}
    for step, parent, _, said in steps:
        scanned = re.match(r"SCAN (\w+)", said)
        if scanned is None or _table_of(sql(name), scanned[1]) not in LARGE:
            continue
        loops = [other for key, above, _, other in steps if above == parent and key < step]
        assert not any(re.match("SCAN|SEARCH", loop) for loop in loops), said
        while parent in parents:
            parent, above = parents[parent]
            assert not above.startswith("CORRELATED"), said


def _table_of(text, alias):
    """Return the table that a name in a query plan stands for."""
    found = re.search(rf"\b(?:live_)?(\w+)\s+(?:AS\s+)?{alias}\b", text)
    return found[1] if found and found[1] in LARGE else alias


class Overheard:
    """A connection that records its statements."""

    def __init__(self, connection):
        self._connection = connection
        self.heard = []

    def execute(self, text, values=None):
        self.heard.append((text, values))
        return self._connection.execute(text, values)


FILTERS = [
    Filter(),
    Filter(types=("semantic",)),
    Filter(categories=("preference",)),
    Filter(session="s"),
    Filter(entity=1),
    Filter(tags=("a",), where={"a": 1}),
    Filter(after=0, before=9),
    Filter(archived=True),
]


@pytest.mark.parametrize("filter_", FILTERS, ids=str)
def test_a_filtered_listing_scans_no_table(connection, filter_):
    ear = Overheard(connection)
    snapshot = DatabaseSnapshot(ear)
    scope = Scope(owner="me")
    snapshot.nodes.page(scope, filter_, now=0, before_key=None, limit=10)
    snapshot.nodes.within(scope, filter_, after=0, before=10, most=10)
    snapshot.nodes.matching(scope, filter_)
    asked = [(text, values) for text, values in ear.heard if "FROM nodes" in text]
    assert len(asked) == 3
    for text, values in asked:
        steps = plan_of(connection, text, values)
        assert not [step for step in steps if re.match(r"SCAN (n|nodes)\b", step)], steps


def test_a_method_that_one_statement_answers_takes_the_arguments_that_the_port_names():
    """`asks` binds arguments by position or by the name in the port; a name of its own would bind NULL."""
    port = ast.parse((SOURCE / "storage" / "groups.py").read_text(encoding="utf-8"))
    signatures = {(group.name, each.name): each.args for group, each in _members(port, ast.FunctionDef)}
    for path in (SOURCE / "storage" / "database").glob("*.py"):
        for group, each in _members(ast.parse(path.read_text(encoding="utf-8")), ast.Assign):
            called = each.value
            if isinstance(called, ast.Call) and getattr(called.func, "id", "") == "asks":
                names = ast.literal_eval(called.args[1]).split()
                method = each.targets[0].id
                if (group.name, method) not in signatures:  # the database asks it of itself
                    continue
                given = signatures[group.name, method]
                assert len(names) == len(given.args) - 1 + len(given.kwonlyargs), (group.name, method)
                assert names[len(given.args) - 1 :] == [each.arg for each in given.kwonlyargs], (group.name, method)


def _members(tree, kind):
    groups = (each for each in tree.body if isinstance(each, ast.ClassDef))
    return [(group, each) for group in groups for each in group.body if isinstance(each, kind)]
