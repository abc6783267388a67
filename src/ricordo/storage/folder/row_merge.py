"""Merge the rows that two histories of a folder wrote since they parted, field by field.

Rows are matched by their public names. People and things that both histories met are matched by name, and relations by
what they say, since each history gave them an id of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ricordo.storage.database.history import TABLES, names_of
from ricordo.storage.jsonl.layout import FORMS, MEMORY_FILES, form_of
from ricordo.storage.jsonl.lines import Line
from ricordo.text.analyzer import name_key

_EXCHANGED: Final = frozenset(TABLES["exchanged"])
_TABLES: Final[Mapping[tuple[str, str], str]] = {(form.file, form.kind): name for name, form in FORMS.items()}
_OF_A_COMMIT = ("row", "commit", "seal")
_ENTITY_FIELDS = ("entity", "source", "target", "merged_into")
"""The fields that may name an entity. Memories have other ids, so a field that names a memory is not mistaken."""
_GUESSED = "guessed_type"

_Name = tuple[Any, ...]


@dataclass(slots=True)
class _Rows:
    """The newest line of each row, by the row's public name; None if the row was removed."""

    newest: dict[_Name, tuple[int, Line | None]] = field(default_factory=dict)
    names: dict[tuple[str, str], _Name] = field(default_factory=dict)
    """By table and the key in a line, which is all that the line of a removal has."""

    def take(self, file: str, line: Line) -> None:
        """Read a line that a commit wrote."""
        table = _table_of(file, line)
        row, commit = line.get("row"), line.get("commit")
        if table is None or not isinstance(row, str) or not isinstance(commit, int):
            return
        is_removed = bool(line.get("removed"))
        name = self.names.get((table, row)) if is_removed else _name_of(table, line)
        if name is not None and commit >= self.newest.get(name, (0, None))[0]:
            self.names[table, row] = name
            self.newest[name] = commit, None if is_removed else line

    def line(self, name: _Name) -> Line | None:
        return self.newest.get(name, (0, None))[1]

    def lines(self, table: str) -> Iterator[Line]:
        yield from (line for name, (_, line) in self.newest.items() if name[0] == table and line is not None)

    def copy(self) -> _Rows:
        return _Rows({**self.newest}, {**self.names})


def merged_rows(
    first: Iterable[tuple[str, Line]], second: Iterable[tuple[str, Line]], *, start: int
) -> Iterator[tuple[str, Line]]:
    """Yield (file, line) for each row that the second history changes in the first one, for adoption by hand.

    A line has the `row` of a known row, and none for a new one; with `removed`, the row goes.

    Args:
        first: all lines of rows, by file, without those of the second history.
        start: the first commit in which the histories differ.
    """
    base, ours = _Rows(), _Rows()
    for file, line in first:
        ours.take(file, line)
        if (line.get("commit") or 0) < start:
            base.take(file, line)
    theirs = base.copy()
    for file, line in second:
        theirs.take(file, line)
    twins = _Twins(ours, theirs)
    for name, (commit, written) in theirs.newest.items():
        if commit >= start and (change := _change(name, written, base, ours, twins)) is not None:
            yield form_of(name[0]).file, change
    for name, (commit, written) in ours.newest.items():
        if commit >= start and written is not None:
            yield from ((form_of(name[0]).file, each) for each in twins.moved(name, written))


class _Twins:
    """Which people, things and relations of two histories are the same."""

    def __init__(self, ours: _Rows, theirs: _Rows) -> None:
        self._ours = ours
        known: dict[tuple[Any, ...], set[str]] = {}
        for each in ours.lines("aliases"):
            known.setdefault((*_space(each), each.get("folded")), set()).add(str(each.get("entity")))
        named = {
            (*_space(each), name_key(str(each.get("name")))): str(each.get("id"))
            for each in ours.lines("entities")
            if each.get("closed_at") is None
        }
        self._ids = _roots(ours)
        self._moved = {id: root for id, root in _roots(theirs).items() if id not in self._ids}
        for each in theirs.lines("entities"):
            id, key = str(each.get("id")), (*_space(each), name_key(str(each.get("name"))))
            if ours.line(("entities", id)) is None and each.get("closed_at") is None:
                same = known.get(key, set())
                found = named.get(key) or (next(iter(same)) if len(same) == 1 else None)
                if found is not None:
                    self._ids[id] = self._ids.get(found, found)
        self._relations = {_said(each): _name_of("relations", each) for each in ours.lines("relations")}

    def renamed(self, table: str, line: Line) -> tuple[_Name, Line]:
        """Return a line of the second history with the ids of the first one, and the name of its row there."""
        found = _with_ids(line, self._ids)
        if table == "entities" and (id := self._ids.get(str(line.get("id")))) and line.get("closed_at") is None:
            found["id"] = id
        name = _name_of(table, found)
        if table == "relations" and self._ours.line(name) is None:
            name = self._relations.get(_said(found), name)
        return name, found

    def moved(self, name: _Name, line: Line) -> Iterator[Line]:
        """Yield what becomes of a row of the first history that names an entity which the second one has merged."""
        if name[0] == "entities" or (renamed := _with_ids(line, self._moved)) == line:
            return
        if name[0] == "relations":
            yield _adopted(renamed, line)
        else:
            yield {**_adopted(line, line), "removed": True}
            if self._ours.line(_name_of(name[0], renamed)) is None:
                yield _adopted(renamed, None)


def _change(name: _Name, theirs: Line | None, base: _Rows, ours: _Rows, twins: _Twins) -> Line | None:
    """Return the line that makes a row say what both histories say; None if the first one says it already."""
    before = base.line(name)
    if theirs is None:
        is_same = before is not None and ours.line(name) is before
        return {**_adopted(before, before), "removed": True} if before is not None and is_same else None
    name, theirs = twins.renamed(name[0], theirs)
    known = ours.line(name)
    if known is None:
        return _adopted(theirs, None)
    merged = _merged(name[0], known, theirs, before)
    return None if merged == _content(known) else _adopted(merged, known, seal=theirs.get("seal"))


def _merged(table: str, ours: Line, theirs: Line, base: Line | None) -> Line:
    """Merge two versions of a row. What the second history changed counts, then what the first one has."""
    found: Line = {}
    changed = {each for each in (*ours, *theirs) if base is not None and theirs.get(each) != base.get(each)}
    tied = {form_of(table).names.get(each, each) for each in TABLES["together"].get(table, ())}
    changed |= tied if changed & tied else set()
    for each in dict.fromkeys((*_content(ours), *_content(theirs))):
        mine, other = ours.get(each), theirs.get(each)
        was = None if base is None else base.get(each)
        if isinstance(mine or other, dict):
            value: Any = _merged_fields(mine or {}, other or {}, was or {})
        elif isinstance(mine or other, list):
            value = _merged_list(mine or [], other or [], was or [])
        else:
            value = other if each in changed or (mine is None and base is None) else mine
        if value is not None and value not in ({}, []):
            found[each] = value
    if table == "entities" and base is None and _is_guessed(ours) and not _is_guessed(theirs):
        found["type"] = theirs.get("type")
        found["metadata"] = {name: value for name, value in found["metadata"].items() if name != _GUESSED}
    return found


def _merged_fields(ours: Mapping[str, Any], theirs: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    changed = {name for name in (*theirs, *was) if theirs.get(name) != was.get(name)}
    kept = {name: value for name, value in ours.items() if name not in changed}
    return kept | {name: theirs[name] for name in changed if name in theirs}


def _merged_list(ours: list[Any], theirs: list[Any], was: list[Any]) -> list[Any]:
    kept = [each for each in ours if each in theirs or each not in was]
    return kept + [each for each in theirs if each not in ours and each not in was]


def _is_guessed(entity: Line) -> bool:
    metadata = entity.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get(_GUESSED))


def _adopted(content: Line, known: Line | None, *, seal: object = None) -> Line:
    """Return a complete line without a commit, to be adopted by hand; `known` is the present line of its row."""
    own = {} if known is None else {"row": known["row"]}
    return {**_content(content), **own, "seal": seal or content.get("seal")}


def _content(line: Line) -> Line:
    return {name: value for name, value in line.items() if name not in _OF_A_COMMIT and value is not None}


def _table_of(file: str, line: Line) -> str | None:
    kind = str(line.get("kind", ""))
    table = "nodes" if file in MEMORY_FILES and not kind else _TABLES.get((file, kind))
    return table if table in _EXCHANGED else None


def _name_of(table: str, line: Line) -> _Name:
    """Return the public name of a row."""
    named = form_of(table).names
    fields = [named.get(each, each) for each in names_of(table)]
    place = () if fields == ["id"] else _space(line)
    return (table, *place, *(line.get(each) for each in fields))


def _space(line: Line) -> tuple[str, str]:
    return str(line.get("owner_user_id") or ""), str(line.get("chat_id") or "")


def _said(relation: Line) -> _Name:
    """Return what a relation says, whatever its id."""
    fields = ("source", "predicate", "target", "valid_from", "valid_until", "closed_at")
    return (*_space(relation), *(relation.get(each) for each in fields))


def _roots(rows: _Rows) -> dict[str, str]:
    """Return, by the id of each merged entity, the one that it is merged into in the end."""
    into = {str(each["id"]): str(each["merged_into"]) for each in rows.lines("entities") if each.get("merged_into")}
    found = {}
    for id in into:
        path = [id]
        while path[-1] in into and into[path[-1]] not in path:
            path.append(into[path[-1]])
        found[id] = path[-1]
    return found


def _with_ids(line: Line, ids: Mapping[str, str]) -> Line:
    return {name: ids.get(value, value) if name in _ENTITY_FIELDS else value for name, value in line.items()}
