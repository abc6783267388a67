"""The knowledge graph of the MCP reference server: entities with observations, and relations between them.

Source: github.com/modelcontextprotocol/servers, src/memory: `memory.json` (or `memory.jsonl`) holds one object a line,
`{"type": "entity", "name", "entityType", "observations"}` or `{"type": "relation", "from", "to", "relationType"}`; its
tool `read_graph` answers with both lists in one object, which is read, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Fact
from ricordo.portability.records import Known, Parsed, Person, Reader, Tie, entity_type, moment, text_of
from ricordo.portability.sources import Material

NAME = "mcp"

Row = Mapping[str, Any]


def fits(material: Material) -> bool:
    """Whether it is such a file, of lines or of one object."""
    if _is_graph(material.document):
        return True
    return any(
        row.get("type") in ("entity", "relation") and ({"name", "observations"} <= row.keys() or "from" in row)
        for _, row in material.lines.rows[:20]
    )


def _is_graph(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("entities"), list) and "relations" in document


def read(material: Material, reader: Reader) -> Parsed:
    """Each entity becomes known, each observation a fact about it, each relation a relation."""
    people: list[Person] = []
    facts: list[Known] = []
    ties: list[Tie] = []
    refused = [] if _is_graph(material.document) else list(material.lines.refused)
    for place, row in _rows(material):
        try:
            if row.get("type") == "entity":
                person, known = _entity(row, place, reader)
                people += [person] if person.name != reader.owner else []
                facts += known
            elif row.get("type") == "relation":
                tie = _tie(row, place)
                if tie.source == reader.owner:  # as Ricordo itself writes what somebody is to the owner
                    people.append(Person(name=tie.target, relation=tie.predicate.replace("_", " "), place=place))
                else:
                    ties.append(tie)
            else:
                raise InvalidError(f"type {row.get('type')!r} is unknown", hint="entity or relation is expected")
        except InvalidError as error:
            refused.append(f"{place}: {error}")
    return Parsed(
        format=NAME, people=tuple(people), facts=tuple(facts), ties=tuple(dict.fromkeys(ties)), refused=tuple(refused)
    )


def _rows(material: Material) -> Iterator[tuple[str, Row]]:
    if not _is_graph(material.document):
        yield from ((f"line {number}", row) for number, row in material.lines.rows)
        return
    for list_, kind in (("entities", "entity"), ("relations", "relation")):
        for number, row in enumerate(material.document[list_] or (), start=1):
            if isinstance(row, dict):
                yield f"{list_} {number}", {**row, "type": kind}


def _entity(row: Row, place: str, reader: Reader) -> tuple[Person, list[Known]]:
    """Some forks of the server date their entities; what they write is read."""
    name = text_of(row, "name")
    if name is None:
        raise InvalidError("no name")
    given = row.get("observations") or []
    if not isinstance(given, list):
        raise InvalidError("observations is no list")
    at = moment(row.get("createdAt"), name="createdAt")
    facts = []
    for text in dict.fromkeys(each for each in given if isinstance(each, str) and each.strip()):
        about = () if name == reader.owner else (name,)
        fact = Fact(content=text, about=about, origin="import", id=reader.id_of(NAME, name, text))
        facts.append(Known(fact=fact, at=at, place=place))
    return Person(name=name, type=entity_type(row.get("entityType")), place=place), facts


def _tie(row: Row, place: str) -> Tie:
    source, target, predicate = text_of(row, "from"), text_of(row, "to"), text_of(row, "relationType")
    if source is None or target is None or predicate is None:
        raise InvalidError("a relation needs from, to and relationType")
    return Tie(source=source, predicate=predicate, target=target, place=place)
