"""Everything a caller may see, in one file: the lines of a folder store, each with the name of its file.

The first line says what the file is and whose, the last how many lines lie between.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from ricordo.model import ExportReport, Scope
from ricordo.portability.output import new_file
from ricordo.ports import Progress
from ricordo.storage import Snapshot
from ricordo.storage.database.schema import migrations
from ricordo.storage.jsonl.layout import ARCHIVE, COMMITS, ENTITIES, EPISODES, MEMORIES
from ricordo.storage.jsonl.writer import ScopedLines

NAME = "jsonl"
VERSION = 1

_TOLD_EACH = 500


def write(path: Path, snapshot: Snapshot, *, scope: Scope, progress: Progress | None) -> ExportReport:
    """Write it all: rows, history, vectors, commits."""
    whole = ScopedLines(snapshot, scope)
    total, counts = whole.count(), Counter[str]()
    whose = {"owner_user_id": scope.owner or None, "chat_id": scope.chat}
    head = {"ricordo": "export", "version": VERSION, "schema": migrations()[-1].version, **whose}
    head["is_whole"] = whole.is_all
    with new_file(path) as file:
        file.write(json.dumps(head, ensure_ascii=False) + "\n")
        written = 0
        for name, line in whole.lines():
            kind = "" if b'"kind":' not in line[:9] else "."
            counts[name + kind] += 1
            file.write(f'{{"in":"{name.removesuffix(".jsonl")}",{line.decode()[1:]}')
            written += 1
            if progress is not None and written % _TOLD_EACH == 0:
                progress(written, max(total, written))
        file.write(json.dumps({"ricordo": "end", "lines": written}) + "\n")
    if progress is not None:
        progress(written, written)
    return ExportReport(
        format=NAME,
        path=str(path),
        facts=counts[MEMORIES],
        messages=counts[EPISODES],
        closed=counts[ARCHIVE],
        people=counts[ENTITIES],
        commits=counts[COMMITS],
        bytes=path.stat().st_size,
    )
