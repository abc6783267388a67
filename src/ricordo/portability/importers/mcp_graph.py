"""The knowledge graph of the MCP reference server: entities with observations, and relations between them.

Source: github.com/modelcontextprotocol/servers, src/memory: `memory.json` (or `memory.jsonl`) holds one object a line,
`{"type": "entity", "name", "entityType", "observations"}` or `{"type": "relation", "from", "to", "relationType"}`; its
tool `read_graph` answers with both lists in one object, which is also supported.
"""

from __future__ import annotations

from collections.abc import Iterator

from ricordo.errors import InvalidError
from ricordo.model import Fact
from ricordo.portability.records import (
    Destination,
    ImportedFact,
    ImportedPerson,
    ImportedRelation,
    Records,
    Row,
    entity_type,
    parse_time,
    read_each,
    text_of,
)
from ricordo.portability.sources import Source

NAME = "mcp"


def fits(source: Source) -> bool:
    """Return whether it is such a file, of lines or of one object."""
    if _is_graph(source.document):
        return True
    return any(
        row.get("type") in ("entity", "relation") and ({"name", "observations"} <= row.keys() or "from" in row)
        for _, row in source.lines.rows[:20]
    )


def _is_graph(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("entities"), list) and "relations" in document


def read(source: Source, destination: Destination) -> Records:
    """Read entities, their observations as facts about them, and relations."""
    people: list[ImportedPerson] = []
    facts: list[ImportedFact] = []
    relations: list[ImportedRelation] = []
    refused = [] if _is_graph(source.document) else list(source.lines.refused)

    def read_row(place: str, row: Row) -> None:
        if row.get("type") == "entity":
            person, known = _entity(row, place, destination)
            if person.name != destination.owner:
                people.append(person)
            facts.extend(known)
        elif row.get("type") == "relation":
            relation = _relation(row, place)
            if relation.source == destination.owner:  # Ricordo exports a relation to the owner in this form
                people.append(
                    ImportedPerson(name=relation.target, relation=relation.predicate.replace("_", " "), place=place)
                )
            else:
                relations.append(relation)
        else:
            raise InvalidError(f"type {row.get('type')!r} is unknown", hint="entity or relation is expected")

    read_each(_rows(source), read_row, refused)
    return Records(
        format=NAME,
        people=tuple(people),
        facts=tuple(facts),
        relations=tuple(dict.fromkeys(relations)),
        refused=tuple(refused),
    )


def _rows(source: Source) -> Iterator[tuple[str, Row]]:
    if not _is_graph(source.document):
        yield from ((f"line {number}", row) for number, row in source.lines.rows)
        return
    for list_, kind in (("entities", "entity"), ("relations", "relation")):
        for number, row in enumerate(source.document[list_] or (), start=1):
            if isinstance(row, dict):
                yield f"{list_} {number}", {**row, "type": kind}


def _entity(row: Row, place: str, destination: Destination) -> tuple[ImportedPerson, list[ImportedFact]]:
    """Read an entity and its observations. Some forks of the server add `createdAt`."""
    name = text_of(row, "name")
    if name is None:
        raise InvalidError("no name")
    given = row.get("observations") or []
    if not isinstance(given, list):
        raise InvalidError("`observations` is not a list")
    at = parse_time(row.get("createdAt"), name="createdAt")
    facts = []
    for text in dict.fromkeys(each for each in given if isinstance(each, str) and each.strip()):
        about = () if name == destination.owner else (name,)
        fact = Fact(content=text, about=about, origin="import", id=destination.id_of(NAME, name, text))
        facts.append(ImportedFact(fact=fact, at=at, place=place))
    return ImportedPerson(name=name, type=entity_type(row.get("entityType")), place=place), facts


def _relation(row: Row, place: str) -> ImportedRelation:
    source, target, predicate = text_of(row, "from"), text_of(row, "to"), text_of(row, "relationType")
    if source is None or target is None or predicate is None:
        raise InvalidError("a relation needs from, to and relationType")
    return ImportedRelation(source=source, predicate=predicate, target=target, place=place)
