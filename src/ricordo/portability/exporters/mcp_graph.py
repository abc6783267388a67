"""Knowledge in the form of the MCP reference server: a line for each entity with its observations, and each relation.

What is about nobody is an observation of the owner, who is an entity by the name of the memory's owner.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ricordo.model import ExportReport
from ricordo.portability.output import new_file
from ricordo.storage.values import Holdings

NAME = "mcp"


def write(path: Path, held: Holdings, *, owner: str) -> ExportReport:
    """Write what holds now."""
    observations: dict[str, list[str]] = {}
    for node in held.facts:
        for name in node.about or (owner,):
            observations.setdefault(name, []).append(node.content)
    kinds = {entity.name: entity.type for entity in held.entities.values()}
    names = dict.fromkeys((*kinds, *observations))
    lines: list[dict[str, Any]] = [
        {
            "type": "entity",
            "name": name,
            "entityType": kinds.get(name, "person"),
            "observations": list(dict.fromkeys(observations.get(name, ()))),
        }
        for name in names
    ]
    for source, predicate, target in held.relations:
        whose = owner if source is None else held.entities[source].name
        ends = {"from": whose, "to": held.entities[target].name}
        lines.append({"type": "relation", **ends, "relationType": predicate.replace(" ", "_")})
    with new_file(path) as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return ExportReport(
        format=NAME,
        path=str(path),
        facts=len(held.facts),
        people=len(kinds),
        relations=len(held.relations),
        files=1,
        bytes=path.stat().st_size,
    )
