"""Which nodes a listing or a search may return, as SQL.

The statement is put together from fixed fragments because SQLite cannot use an index behind
`(:session IS NULL OR session = :session)`; every value is a bound parameter. A test runs every combination.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ricordo.storage.values import Filter

# What is held in quarantine is closed, and no part of the archive.
_ARCHIVED = "n.closed_at IS NOT NULL AND n.closed_reason != 'quarantined'"
_FRAGMENTS: Mapping[str, str] = {
    "types": "n.type IN (SELECT value FROM json_each(:types))",
    "categories": "n.category IN (SELECT value FROM json_each(:categories))",
    "entity": (
        "n.key IN (SELECT node FROM subjects WHERE entity IN (SELECT key FROM entities WHERE key = :entity"
        " OR merged_into = :entity) UNION SELECT node FROM found_mentions WHERE entity IN (SELECT key FROM entities"
        " WHERE key = :entity OR merged_into = :entity))"
    ),
    "tags": (
        "NOT EXISTS (SELECT 1 FROM json_each(:tags) AS t WHERE t.value NOT IN (SELECT value FROM json_each(n.tags)))"
    ),
    "where": (
        "NOT EXISTS (SELECT 1 FROM json_each(:where) AS w WHERE NOT EXISTS (SELECT 1 FROM json_each(n.attributes)"
        " AS a WHERE a.key = w.key AND a.type = w.type AND a.value IS w.value))"
    ),
    "session": (
        "n.session IN (SELECT key FROM sessions"
        " WHERE space IN (SELECT value FROM json_each(:spaces)) AND session_id = :session)"
    ),
    "after": "n.event_time >= :after",
    "before": "n.event_time < :before",
}


def conditions(filter_: Filter) -> tuple[str, dict[str, object]]:
    """The WHERE clause over `nodes AS n`, and its parameters except `:spaces`."""
    values: dict[str, object] = {
        "types": json.dumps(filter_.types) if filter_.types else None,
        "categories": json.dumps(filter_.categories) if filter_.categories else None,
        "entity": filter_.entity,
        "tags": json.dumps(filter_.tags) if filter_.tags else None,
        "where": json.dumps(dict(filter_.where)) if filter_.where else None,
        "session": filter_.session,
        "after": filter_.after,
        "before": filter_.before,
    }
    given = {name: value for name, value in values.items() if value is not None}
    clauses = [
        "n.space IN (SELECT value FROM json_each(:spaces))",
        "n.shelf IN (SELECT value FROM json_each(:shelves))",
        _ARCHIVED if filter_.archived else "n.closed_at IS NULL",
        *(_FRAGMENTS[name] for name in given),
    ]
    return " AND ".join(clauses), {**given, "shelves": json.dumps(filter_.shelves)}
