"""Stores for the attacks of `agent-memory-integrity`: by someone who can write the files directly.

It checks whether the store notices. Ours notices when it is checked: by `doctor`, which `ricordo doctor` and the health
of a served store run, not each read.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import apsw
from agmi.adapters.base import MemoryAdapter, Record

from ricordo import RicordoError, Scope, Settings
from ricordo.sync import Memory

PLACES = ("id", "key", "space", "session", "row")
"""Columns that identify a row rather than hold its content."""


class AtRest(MemoryAdapter):
    """The part that both kinds of store share: written through `Memory`, checked by `doctor`."""

    supports_replay = supports_metadata = supports_snapshot = True
    location: Path

    def setup(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ricordo-"))

    def teardown(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self, owner: str) -> Memory:
        settings = Settings(durability="process")
        return Memory.open(self._where(), embedder=None, scope=Scope(owner=owner), settings=settings)

    def _where(self) -> str:
        raise NotImplementedError

    def seed(self, n: int) -> None:
        self._tell("me", n)

    def seed_other(self, n: int) -> None:
        self._tell("another", n)

    def append_genuine(self) -> None:
        self._tell("me", 1, first=100)

    def _tell(self, owner: str, n: int, *, first: int = 0) -> None:
        with self._open(owner) as memory:
            for number in range(first, first + n):
                memory.add(f"{owner} said number {number}", session="s")

    def reload(self) -> None:
        """Open the store for every check."""

    def verify(self) -> bool:
        try:
            with self._open("me") as memory:
                report = memory.doctor()
                by_hand = [commit.reason for commit in memory.log(limit=1_000) if commit.origin == "hand"]
                memory.search("number")
        except RicordoError as error:
            self.verify_detail = f"{type(error).__name__}: {error.message}"
            return False
        noticed = [finding.check for finding in report.findings if not finding.ok]
        self.verify_detail = ", ".join([*noticed, *(f"{each}, in the log" for each in by_hand)]) or None
        return report.ok and not by_hand

    def payload_of(self, record: Record) -> str:
        return str(record.fields["content"])

    def mutate_payload(self, record: Record) -> Record:
        record.fields["content"] += " [TAMPERED]"
        return record

    def read_meta(self, seq: int) -> dict[str, Any]:
        return {"speaker": self._record(seq).fields.get("speaker")}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        record = self._record(seq)
        record.fields["speaker"] = "mallory"
        self.write_raw(record)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        victim = self._record(victim_seq)
        kept = {name: value for name, value in victim.fields.items() if name in (*PLACES, "owner_user_id")}
        self.write_raw(Record(seq=victim_seq, fields={**donor.fields, **kept}))

    def _record(self, seq: int) -> Record:
        return next(record for record in self.read_all_raw() if record.seq == seq)

    def snapshot_store(self) -> object:
        return self._copy_store(self._folder)

    def restore_store(self, token: object) -> None:
        self._restore_store(str(token), self._folder)


class FileStore(AtRest):
    """One SQLite file, written without its triggers, because these would update other tables."""

    name = "ricordo, file"

    def _where(self) -> str:
        return str(self._folder / "memory.db")

    def _rows(self, owner: str) -> list[Record]:
        with Closing(self._where()) as connection:
            names = [row[1] for row in connection.execute("PRAGMA table_info(nodes)")]
            rows = connection.execute(
                "SELECT n.* FROM nodes n JOIN spaces s ON s.key = n.space WHERE s.owner = ? ORDER BY n.key", (owner,)
            )
            found = [dict(zip(names, row, strict=True)) for row in rows]
        return [Record(seq=int(row["key"]), fields=row) for row in found]

    def read_all_raw(self) -> list[Record]:
        return self._rows("me")

    def read_other_raw(self) -> list[Record]:
        return self._rows("another")

    def owner_of(self, record: Record) -> str | None:
        return str(record.fields["space"])

    def write_raw(self, record: Record) -> None:
        known = {each.seq for each in (*self.read_all_raw(), *self.read_other_raw())}
        values = {name: value for name, value in record.fields.items() if name not in ("id", "key")}
        if record.seq in known:
            sets = ", ".join(f"{name} = :{name}" for name in values)
            self._past_triggers(f"UPDATE nodes SET {sets} WHERE key = :key", {**values, "key": record.seq})
        else:
            fields = {**record.fields, "id": f"forged-{record.seq}", "key": record.seq}
            names = ", ".join(fields)
            marks = ", ".join(f":{name}" for name in fields)
            self._past_triggers(f"INSERT INTO nodes ({names}) VALUES ({marks})", fields)

    def delete_raw(self, seq: int) -> None:
        self._past_triggers("DELETE FROM nodes WHERE key = :key", {"key": seq})

    def _past_triggers(self, statement: str, values: dict[str, Any]) -> None:
        with Closing(self._where()) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            triggers = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
            connection.execute("BEGIN")
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(statement, values)
            for _, text in triggers:
                connection.execute(text)
            connection.execute("COMMIT")


class Closing:
    """Open a separate connection to a file that is not in use."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)

    def __enter__(self) -> apsw.Connection:
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class FolderStore(AtRest):
    """A folder of JSON Lines, edited as text; each line keeps its seal. Edits are allowed: they are imported as a
    commit "by hand", which `log` shows and `undo` takes back. Opening the folder reports it.
    """

    name = "ricordo, folder"

    def _where(self) -> str:
        return f"{self._folder}/memories/"

    @property
    def _file(self) -> Path:
        return self._folder / "memories" / "episodes.jsonl"

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines() if line.strip()]

    def _write(self, lines: list[dict[str, Any]]) -> None:
        texts = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines]
        self._file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")

    def _of(self, owner: str) -> list[Record]:
        return [
            Record(seq=int(line["row"]), fields=line) for line in self._lines() if line.get("owner_user_id") == owner
        ]

    def read_all_raw(self) -> list[Record]:
        return self._of("me")

    def read_other_raw(self) -> list[Record]:
        return self._of("another")

    def owner_of(self, record: Record) -> str | None:
        return str(record.fields["owner_user_id"])

    def write_raw(self, record: Record) -> None:
        lines = self._lines()
        place = next((place for place, line in enumerate(lines) if int(line["row"]) == record.seq), None)
        if place is None:
            lines.append({**record.fields, "id": f"forged-{record.seq}", "row": str(record.seq)})
        else:
            lines[place] = {**record.fields, "id": lines[place]["id"], "row": lines[place]["row"]}
        self._write(lines)

    def delete_raw(self, seq: int) -> None:
        self._write([line for line in self._lines() if int(line["row"]) != seq])
