"""Figures about a caller's memories: counts, sizes, and the scores that unrelated prompts reach."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ricordo.clock import from_ms
from ricordo.model import ClosedReason, Scope, Stats
from ricordo.storage.database.embedding_models import EmbeddingModels
from ricordo.storage.database.nodes import Lifecycle
from ricordo.storage.database.rows import Row
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import Floor


class Statistics:
    """Figures about a caller's memories: counts, sizes, and the scores that unrelated prompts reach."""

    def __init__(self, sql: Statements, models: EmbeddingModels, lifecycle: Lifecycle) -> None:
        self._sql = sql
        self._models = models
        self._lifecycle = lifecycle

    def size(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        return self._sql.once(("shelf_counts", scope, *shelves), lambda: self._size(scope, shelves))

    def _size(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        rows = [row for row in self._sql.rows_of_store("shelf_counts", self._sql.scoped(scope)) if row[1] in shelves]
        return sum(row[2] for row in rows), sum(row[3] for row in rows)

    def summary(self, scope: Scope, *, whole_store: bool) -> Stats:
        models = {model.state: model for model in self._models.known()}
        active, coming = models.get("active"), models.get("coming")
        nodes: dict[str, int] = dict(self._rows(scope, "count_types"))
        embedded, arrived = (
            self._rows(scope, "count_embedded", model=model.key)[0][0] if model else 0 for model in (active, coming)
        )
        sessions, waiting = self._rows(scope, "count_sessions")[0]
        oldest, newest = self._rows(scope, "event_span")[0]
        edges = {kind: count for kind, count in self._rows(scope, "count_edges") if count}
        consolidated = self._value(scope, "last_consolidated")
        decayed = self._lifecycle.last_decay(scope)
        size = self._sql.value("store_bytes") if whole_store else self._value(scope, "own_bytes")
        return Stats(
            nodes=nodes,
            categories=dict(self._rows(scope, "count_categories")),
            closed=self._value(scope, "count_closed"),
            edges=edges,
            edges_per_node=sum(edges.values()) / max(1, sum(nodes.values())),
            orphans=self._value(scope, "count_orphans"),
            entities=self._value(scope, "count_entities"),
            sessions=sessions,
            sessions_waiting=waiting,
            last_consolidation=None if consolidated is None else from_ms(consolidated),
            last_decay=None if decayed is None else from_ms(decayed),
            embedder=active.name if active else None,
            embedded=embedded,
            embedding_missing=sum(nodes.values()) - embedded if active else 0,
            next_embedder=coming.name if coming else None,
            next_embedded=arrived,
            commits=self._value(scope, "count_commits"),
            size_mb=size / 1_000_000,
            oldest=None if oldest is None else from_ms(oldest),
            newest=None if newest is None else from_ms(newest),
            quarantined=self._value(scope, "count_held"),
        )

    def closed(self, scope: Scope) -> dict[str, int]:
        return dict(self._rows(scope, "archive_counts"))

    def closed_keys(self, scope: Scope, reason: ClosedReason | None, *, limit: int) -> list[int]:
        return [key for (key,) in self._rows(scope, "archive_listed", reason=reason, most=limit)]

    def floor(self, scope: Scope, *, model: int, rule: int) -> Floor | None:
        rows = self._rows(scope, "floor_of", model=model, rule=rule)
        if not rows:
            return None
        count, middle, spread, chance = rows[0]
        middle, spread = tuple(json.loads(middle)), tuple(json.loads(spread))
        return Floor(model=model, count=count, middle=middle, spread=spread, chance=chance)

    def put_floor(self, scope: Scope, floor: Floor, *, rule: int) -> None:
        self._rows(
            scope,
            "floor_put",
            model=floor.model,
            rule=rule,
            count=floor.count,
            middle=json.dumps(floor.middle),
            spread=json.dumps(floor.spread),
            chance=floor.chance,
        )

    def _rows(self, scope: Scope, name: str, **values: Any) -> list[Row]:
        return self._sql.rows(name, self._sql.scoped(scope, **values))

    def _value(self, scope: Scope, name: str) -> Any:
        return self._rows(scope, name)[0][0]
