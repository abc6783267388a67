"""Tables that last and are no truth: their rows carry no seal, so one sum over the rows of each is kept by triggers.

The sum is that of `row_sum` over all rows, modulo 2^62: a row that comes is added and one that goes is taken off,
whatever the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import apsw

from ricordo.storage.database.fingerprints import FINGERPRINT_KEY
from ricordo.storage.database.queries import sql

UNSEALED: Final = (
    "spaces",
    "models",
    "off_record",
    "associates",
    "erased",
    "erased_ids",
    "erasing",
    "to_erase",
    "model_use",
    "failures",
    "withheld",
    "withheld_prints",
    "withheld_spans",
    "meta",
    "embeddings",
    "word_vectors",
)
"""What a folder keeps in `store.jsonl` and `vectors.jsonl`."""

SUM_MASK: Final = (1 << 62) - 1

WHICH: Final[Mapping[str, str]] = {"meta": f"WHERE name IN ('{FINGERPRINT_KEY}')"}
"""Of tables of which not all rows last: which do. Other rows of `meta` are marks of background work."""


def unsealed(connection: apsw.Connection) -> Mapping[str, tuple[str, ...]]:
    """The columns of these tables in order."""
    found: dict[str, list[str]] = {name: [] for name in UNSEALED}
    for table, column, _ in connection.execute(sql("schema_columns")):
        if table in found:
            found[table].append(column)
    return {name: tuple(columns) for name, columns in found.items()}
