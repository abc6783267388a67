"""Erase rows a few at a time, each step complete, so that another process can continue after a kill.

What is to be erased is recorded first, as keys without content. The code is built from the schema and names only the
few tables to which no foreign key leads. Whatever refers to a row is erased before the row, in truth and in history.
The hash of a truth row is kept, so that digests of the commits that wrote or replaced it can still be verified.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ricordo.clock import from_ms
from ricordo.model import Reason
from ricordo.storage import faults
from ricordo.storage.database.hashes import bare, digest, erased_hash, former_hash, seal, sealed
from ricordo.storage.database.history import TABLES, Table, named, text_of_key, truth_of
from ricordo.storage.database.integrity import fingerprint_key, id_fingerprint, put_commit, settle_digest
from ricordo.storage.database.statements import Group, Statements, as_set, asks, column, commit_of, first, rows_as
from ricordo.storage.database.word_index import look_again_for
from ricordo.storage.values import Derived, ErasureTargets, Image, OpenErasure, Undone, undone_rows

STEP_ROWS = 500
"""How many rows of a table are erased in one transaction, with all rows that refer to them."""

_REFERRING = frozenset(TABLES["referring"])

_EXCHANGED = frozenset(TABLES["exchanged"])

_LISTED = ("nodes", "relations", "entities", "sessions")
"""The tables whose rows are listed one by one, in the order of their erasure."""

_UNNAMED = ("owner_words_erase", "owner_words_blank", "owner_actor_blank", "off_record_erase", "owner_unnamed")
"""The statements that remove an owner's name from the store."""

_GO_ALONG = {
    ("entities", "memory"): "erase_entities_needed",
    ("entities", "session"): "erase_entities_needed",
    ("sessions", "memory"): "erase_sessions_needed",
    ("sessions", "entity"): "erase_sessions_needed",
}
"""Statements by (table, kind of erasure). Each finds rows that something refers to again, although they were marked for
erasure because nothing did."""


def _undone(table: str) -> str:
    """Return the condition for rows of `history` whose row in a truth table no longer exists."""
    return f'h.tbl = ? AND NOT EXISTS (SELECT 1 FROM "{table}" AS t WHERE t.key = CAST(h.row AS BIGINT))'


class _Erasing:
    """The part of an erasure that is done in one transaction. SQL is built from names in the schema."""

    def __init__(self, snapshot: Statements, erasing: int, at: int, *, keeps_ids: bool = True) -> None:
        self._snapshot = snapshot
        self._connection: Any = snapshot.connection  # the schema decides the types of columns
        self._truth = truth_of(snapshot.connection)
        self._erasing = erasing
        self._at = at
        self._keeps_ids = keeps_ids

    def next(self, table: str) -> list[int]:
        values = {"erasing": self._erasing, "table": table, "most": STEP_ROWS}
        return column(self._snapshot.rows("to_erase_next", values))

    def done(self, table: str, keys: Sequence[int]) -> None:
        values = {"erasing": self._erasing, "table": table, "rows": json.dumps(keys)}
        self._snapshot.rows("to_erase_done", values)

    def needed_again(self, table: str, keys: Sequence[int], kind: str) -> set[int]:
        """Return rows that were to be erased because nothing referred to them, but to which something refers now."""
        statement = _GO_ALONG.get((table, kind))
        return as_set(self._snapshot.rows(statement, {"keys": json.dumps(keys)})) if statement else set()

    def purge_some_of_space(self, space: int) -> int:
        """Erase some rows of a space, memories first; return how many, 0 if none are left."""
        references = [
            each for each in self._truth.references if each.target == "spaces" and each.table not in _REFERRING
        ]
        for reference in sorted(references, key=lambda each: each.table != "nodes"):
            if not self._has_key(reference.table):
                continue
            statement = f'SELECT key FROM "{reference.table}" WHERE "{reference.column}" = ? LIMIT ?'
            keys = column(self._connection.execute(statement, (space, STEP_ROWS)).fetchall())
            keys = keys or self._undone_of_space(reference.table, space)
            if keys:
                self.purge(reference.table, keys)
                return len(keys)
        self._remove_children("spaces", [space])
        self.done("spaces", [space])
        return 0

    def _undone_of_space(self, table: str, space: int) -> list[int]:
        """Return some rows of a space that exist only in the history."""
        if table not in self._truth.tables:
            return []
        of_space = self._snapshot.former_key.format("space")
        statement = f"SELECT DISTINCT row FROM history AS h WHERE {_undone(table)} AND {of_space} = ? LIMIT ?"
        return [int(row) for row in column(self._connection.execute(statement, (table, space, STEP_ROWS)).fetchall())]

    def purge(self, table: str, keys: Sequence[int]) -> None:
        """Erase rows that have a key, also those that exist only in the history, and whatever refers to them."""
        if table == "nodes":
            self._purge_nodes(keys)
            return
        rows = self._snapshot.rows("erase_names", {"entities": json.dumps(keys)}) if table == "entities" else []
        self._remove_children(table, keys)
        self._remove(table, "key", keys)
        look_again_for(self._snapshot, [(space, name) for space, name, is_shared in rows if is_shared])

    def _purge_nodes(self, keys: Sequence[int]) -> None:
        """Erase memories. An erased time must not stay in the time spans of the people and things named."""
        self._before_nodes(keys)
        spanned = {"entities": json.dumps(column(self._snapshot.rows("spans_at_nodes", {"nodes": json.dumps(keys)})))}
        self._remove_children("nodes", keys)
        self._remove("nodes", "key", keys)
        self._snapshot.rows("spans_renew", spanned)
        self._snapshot.rows("spans_erase", spanned)

    def _has_key(self, table: str) -> bool:
        if table in self._truth.tables:
            return self._truth.tables[table].key == ("key",)
        return (table, "key") in {row[:2] for row in self._snapshot.rows("schema_columns")}

    def _remove_children(self, table: str, keys: Sequence[int]) -> None:
        for reference in self._truth.references:
            if reference.target != table or reference.table in _REFERRING or reference.outlasts:
                continue
            if not self._has_key(reference.table):
                self._remove(reference.table, reference.column, keys)
                continue
            statement = f'SELECT key FROM "{reference.table}" WHERE "{reference.column}" {self._snapshot.among}'
            children = column(self._connection.execute(statement, (json.dumps(keys),)).fetchall())
            children = [key for key in children if reference.table != table or key not in keys]
            if children:
                self.purge(reference.table, children)

    def _remove(self, name: str, by: str, keys: Sequence[int]) -> None:
        where, values = f'"{by}" {self._snapshot.among}', (json.dumps(keys),)
        table = self._truth.tables.get(name)
        if table is None:
            self._connection.execute(f'DELETE FROM "{name}" WHERE {where}', values)
            return
        columns = named((*table.key, "commit_seq", "seal"))
        rows = self._connection.execute(f'SELECT {columns} FROM "{name}" WHERE {where}', values).fetchall()
        seals = {row[:-2]: row[-1] for row in rows}
        if by == "key":
            seals = {
                **{(key,): b"" for key in keys},
                **seals,
            }  # of a row that was undone, the history still holds versions
        if seals:
            self._connection.execute(f'DELETE FROM "{name}" WHERE {where}', values)
            self._leave_hashes((row[-2], row[-1]) for row in rows)
            self._forget_history(table, {text_of_key(key): seal_ for key, seal_ in seals.items()})
            self._forget_stamps(name, seals)

    def _leave_hashes(self, written: Iterable[tuple[int, bytes]]) -> None:
        """Keep the hashes of erased rows, given as (commit, seal), and blank the texts of their commits."""
        found = list(written)
        rows = [(made, "row", bare(seal_), None, self._erasing) for made, seal_ in found]
        self._snapshot.many("erased_put", rows)
        values = {"seqs": json.dumps(sorted({made for made, _ in found}))}
        self._snapshot.rows("words_erase", {**values, "erasing": self._erasing})
        self._snapshot.rows("words_blank", values)

    def _forget_history(self, table: Table, gone: Mapping[str, bytes]) -> None:
        """Erase all versions of rows that no longer exist, including the version recorded just now.

        Args:
            gone: maps each row to its seal; b"" if it was not removed just now.
        """
        values = {"table": table.name, "rows": json.dumps([*gone])}
        former = self._snapshot.rows("history_images", values)
        self._leave_images(table, [each for each in former if table.image(each[3], each[1])["seal"] != gone[each[1]]])
        self._snapshot.rows("history_erase_rows", values)

    def _forget_stamps(self, table: str, keys: Iterable[tuple[Any, ...]]) -> None:
        """Delete the stamps of erased rows, except the record that tells other devices to erase them as well."""
        named = [{"table": table, "row": json.dumps(key, ensure_ascii=False, separators=(",", ":"))} for key in keys]
        for statement in ("stamps_erased_first", "stamps_erase", "stamps_erased_last") if table in _EXCHANGED else ():
            for each in named:
                self._snapshot.rows(statement, each)

    def _leave_images(self, table: Table, images: Sequence[tuple[int, str, int, str]]) -> None:
        """Keep hashes of former versions (made, row, replaced, before), which digests of commits need."""
        self._leave_hashes((made, table.image(before, row)["seal"]) for made, row, _, before in images)
        rows = [
            (replaced, "former", former_hash(table.name, row, before), None, self._erasing)
            for _, row, replaced, before in images
        ]
        self._snapshot.many("erased_put", rows)

    def _forget_image(self, table: Table, image: tuple[int, str, int, str]) -> None:
        _, row, replaced, _ = image
        self._leave_images(table, [image])
        self._snapshot.rows("history_erase_image", {"table": table.name, "row": row, "seq": replaced})

    def forget_image(self, table: str, row: str | int, seq: int) -> None:
        """Erase one former version of a row that itself stays."""
        known = self._truth.tables[table]
        for image in self._snapshot.rows("history_images", {"table": table, "rows": json.dumps([str(row)])}):
            if image[2] == seq:
                self._forget_image(known, image)

    def _before_nodes(self, keys: Sequence[int]) -> None:
        """Erase what refers to memories other than by a foreign key."""
        rows = self._ids_of(keys)
        spaces = {"spaces": json.dumps(sorted({space for _, _, space in rows}))}
        self._snapshot.rows("packs_erase", spaces)
        self._snapshot.rows("centres_erase", spaces)
        if self._keeps_ids:
            key = fingerprint_key(self._snapshot)
            told = [(space, id_fingerprint(key, node_id), self._at) for _, node_id, space in rows]
            self._snapshot.many("erased_id_put", told)
            self._take_out_evidence({node_id for _, node_id, _ in rows})

    def _ids_of(self, keys: Sequence[int]) -> list[tuple[int, str, int]]:
        """Return (key, id, space) of memories, also of those that exist only in the history."""
        found = {row[0]: row for row in self._snapshot.rows("erase_ids", {"nodes": json.dumps(keys)})}
        gone = json.dumps([str(key) for key in keys if key not in found])
        for _, row, _, before in self._snapshot.rows("history_images", {"table": "nodes", "rows": gone}):
            image = json.loads(before)
            found[int(row)] = (int(row), image["id"], image["space"])
        return [*found.values()]

    def _take_out_evidence(self, ids: set[str]) -> None:
        """Remove erased memories from the evidence of rows that also have other evidence."""
        for table in self._truth.tables.values():
            if "evidence" not in table.columns:
                continue
            for image in table.images(self._connection, self._snapshot.holds_evidence, (json.dumps(sorted(ids)),)):
                self._rewrite(table, image, {"evidence": _without(image["evidence"], ids)})
            self._rewrite_history(table, ids)

    def _rewrite_history(self, table: Table, ids: set[str]) -> None:
        for _, row, seq, before in self._snapshot.rows("history_images_of_table", {"table": table.name}):
            image = table.image(before, row)
            evidence = _without(image["evidence"], ids)
            if evidence != image["evidence"]:
                fresh = self._resealed(table, image, {"evidence": evidence})
                told = {name: value for name, value in fresh.items() if name != "key"}
                text = json.dumps({**told, "seal": told["seal"].hex().upper()}, ensure_ascii=False)
                values = {"before": text, "table": table.name, "row": row, "seq": seq}
                self._snapshot.rows("history_rewrite", values)
                was, now = former_hash(table.name, row, before), former_hash(table.name, row, text)
                self._snapshot.many("erased_put", [(seq, "former", was, now, self._erasing)])

    def take_out(self, name: str, key: int, values: Mapping[str, Any]) -> None:
        """Set columns of a row, and erase former versions with other values in them."""
        table = self._truth.tables[name]
        for row in table.images(self._connection, "key = ?", (key,)):
            self._rewrite(table, row, values)
        for image in self._snapshot.rows("history_images", {"table": name, "rows": json.dumps([str(key)])}):
            former = table.image(image[3], image[1])
            if any(former[each] != value for each, value in values.items()):
                self._forget_image(table, image)

    def _rewrite(self, table: Table, image: Image, values: Mapping[str, Any]) -> None:
        fresh = self._resealed(table, image, values)
        columns = [*values, "seal"]
        marks = ", ".join(f'"{name}" = ?' for name in columns)
        bound = [*(fresh[name] for name in columns), *(image[name] for name in table.key)]
        self._connection.execute(f'UPDATE "{table.name}" SET {marks} WHERE {table.where_key}', bound)
        told = {"table": table.name, "row": text_of_key(table.row_id(image).key), "commit": image["commit_seq"]}
        self._snapshot.rows("history_unmake", told)

    def _resealed(self, table: Table, image: Image, values: Mapping[str, Any]) -> dict[str, Any]:
        fresh = {**image, **values}
        fresh["seal"] = seal([fresh[name] for name in table.sealed])
        row = (image["commit_seq"], "row", bare(image["seal"]), bare(fresh["seal"]), self._erasing)
        self._snapshot.many("erased_put", [row])
        return fresh

    def sweep_history(self) -> None:
        """Erase former versions of rows that no longer exist, if they refer to something that is erased now."""
        for table in self._truth.tables.values():
            for reference in self._truth.parents(table.name):
                if reference.target == table.name and reference.column == "merged_into":
                    continue
                key = self._snapshot.former_key.format(reference.column)
                of_row = key.replace("before", "h.before")
                statement = (
                    f"SELECT made, row, seq, before FROM history AS h WHERE tbl = ? AND {key} IS NOT NULL"
                    f' AND NOT EXISTS (SELECT 1 FROM "{reference.target}" t WHERE t.key = {of_row})'
                    f" AND NOT EXISTS (SELECT 1 FROM history p WHERE p.tbl = '{reference.target}'"
                    f"   AND p.row = CAST({of_row} AS TEXT))"
                )
                images = self._connection.execute(statement, (table.name,)).fetchall()
                for image in images:
                    self._forget_image(table, image)
                self._forget_stamps(table.name, {table.row_id(table.image(each[3], each[1])).key for each in images})


def _without(evidence: str, ids: set[str]) -> str:
    """Return a JSON list without some members, or the same text if it has none of them."""
    listed = json.loads(evidence)
    kept = [each for each in listed if each not in ids]
    return evidence if len(kept) == len(listed) else json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


class Erasure(Group):
    """Erases rows for good, in small transactions, so that another process can continue if this one is killed."""

    def begin(self, targets: ErasureTargets, *, at: int) -> int:
        if not targets.space:
            space = int(self._sql.value("space_insert", {"owner": targets.owner, "chat": ""}))
            targets = replace(targets, space=space)
        held = self._sql.rows("erase_ids", {"nodes": json.dumps(targets.nodes)})
        spaces = {targets.space, *(space for _, _, space in held)}
        self._forget_measured(spaces, at=at)
        for space in spaces:
            self._sql.rows("unplaced_erase", {"space": space})
        erasing = int(self._sql.value("erasing_begin", {"space": targets.space, "kind": targets.kind, "at": at}))
        rows = [(erasing, table, key) for table in _LISTED for key in getattr(targets, table)]
        work = _Erasing(self._sql, erasing, at)
        if targets.whole_space:
            rows.append((erasing, "spaces", targets.space))
            self._unname(erasing, space=targets.space, owner=targets.owner)
        self._sql.many("to_erase_put", rows)
        for table, key in targets.summarised:
            work.take_out(table, key, {"summary": None})
        for row, seq in targets.former:
            work.forget_image("nodes", row, seq)
        return erasing

    imports = asks("imports_naming_files", "space nodes", list)

    def forget_files(self, erasing: int, imports: Collection[int]) -> None:
        values = {"seqs": json.dumps(sorted(imports)), "erasing": erasing}
        self._sql.rows("import_words_erase", values)
        self._sql.rows("words_blank", {"seqs": values["seqs"]})

    def _forget_measured(self, spaces: Iterable[int], *, at: int) -> None:
        values = {"spaces": json.dumps(sorted(spaces)), "at": at}
        self._sql.rows("floors_erase", {"spaces": values["spaces"]})
        self._sql.rows("proposals_erase", values)

    def _unname(self, erasing: int, *, space: int, owner: str) -> None:
        values = {"erasing": erasing, "space": space, "owner": owner}
        for statement in _UNNAMED:
            self._sql.rows(statement, values)

    def step(self, erasing: int, *, kind: str, at: int) -> int:
        work = _Erasing(self._sql, erasing, at, keeps_ids=kind != "owner")
        for table in _LISTED:
            keys = work.next(table)
            if keys:
                needed = work.needed_again(table, keys, kind)
                work.purge(table, [key for key in keys if key not in needed])
                for key in needed:  # its summary may still contain what was erased
                    work.take_out(table, key, {"summary": None})
                work.done(table, keys)
                return len(keys)
        for space in work.next("spaces"):
            return work.purge_some_of_space(space)
        return 0

    def finish(self, erasing: int, *, space: int, kind: str, at: int, actor: str) -> None:
        if not [row for row in self._sql.rows("erasing_open") if row[0] == erasing and row[4] == "rows"]:
            return  # another process was first
        work = _Erasing(self._sql, erasing, at)
        work.sweep_history()
        for statement in ("relations_to_link_erase", "to_link_erase"):
            self._sql.rows(statement)
        self._forget_measured([space], at=at)
        left = [erased_hash(row) for row in self._sql.rows("erased_of", {"erasure": erasing})]
        previous, head = (self._sql.rows("commit_last") or [(0, b"")])[0]
        seq = previous + 1
        erasure = sealed((erasing, space, kind, at, len(left), digest(left), seq))
        reason = Reason(actor=actor, origin="erase", reason="erase")
        commit = put_commit(self._sql, head, seq, space=space, reason=reason, at=from_ms(at), hashes=())
        self._sql.many("erasure_put", [erasure])
        settle_digest(self._sql, head, commit)
        self._sql.rows("to_erase_drop", {"erasing": erasing})
        self._sql.rows("erasing_rows_gone", {"erasing": erasing})
        faults.reached("erase: before its commit")

    # what an erasure would remove

    unfinished = asks("erasing_open", "", rows_as(OpenErasure._make))

    def end(self, erasures: Sequence[int]) -> None:
        for erasing in erasures:
            self._sql.rows("erasing_end", {"erasing": erasing})

    older_versions = asks("erase_older", "key", column)
    sessions = asks("erase_sessions", "scope session", column)
    nodes_in = asks("erase_in_session", "sessions", column)
    members = asks("erase_members", "entity", column)

    own_names = asks("erase_names", "entities", lambda rows: [alias for _, alias, is_shared in rows if not is_shared])
    nodes_naming = asks("erase_naming", "entities", as_set)

    def texts(self, space: int) -> Iterator[tuple[int, str]]:
        return self._sql.each("erase_texts", {"space": space})

    summaries = asks("erase_summaries", "space", list)

    def former_texts(self, space: int) -> Iterator[tuple[str, int, str]]:
        for _, row, seq, before in self._sql.rows("history_images_of_table", {"table": "nodes"}):
            image = json.loads(before)
            if image["space"] == space:
                words = image["content"], image["speaker"] or "", image["tags"], image["attributes"]
                yield row, seq, "\n".join(words)

    def undone(self, spaces: Collection[int]) -> Undone:
        truth = truth_of(self._sql.connection)
        images = {name: self._undone_images(truth.tables[name], spaces) for name in _LISTED}
        if not any(images.values()):
            return undone_rows(images, (), (), origin=str)
        links = [(image["node"], "about", image["entity"]) for image in self._images(truth.tables["subjects"])]
        links += [
            (image["source"], image["relation_type"], image["target"]) for image in self._images(truth.tables["edges"])
        ]
        names = [(image["entity"], image["alias"]) for image in self._images(truth.tables["aliases"])]
        names += [(image["key"], image["canonical_name"]) for image in images["entities"]]
        return undone_rows(images, links, names, origin=self._origin)

    def _origin(self, seq: int) -> str:
        return commit_of(self._sql.rows("commit_by_seq", {"seq": seq})[0]).origin

    def _images(self, table: Table) -> Iterator[Image]:
        for _, row, _, before in self._sql.rows("history_images_of_table", {"table": table.name}):
            yield table.image(before, row)

    def _undone_images(self, table: Table, spaces: Collection[int]) -> list[Image]:
        statement = f"SELECT row, before FROM history AS h WHERE {_undone(table.name)} ORDER BY seq"
        found: list[Any] = self._sql.connection.execute(statement, (table.name,)).fetchall()
        images = (table.image(before, row) for row, before in found)
        return [image for image in images if image["space"] in spaces]

    derived = asks("erase_derived", "nodes", rows_as(Derived._make))
    proposed = asks("erase_proposed", "nodes", column)
    sources = asks("erase_resting", "nodes", column)
    relations = asks("erase_relations", "nodes entities", column)
    orphaned_entities = asks("erase_forsaken", "nodes relations", column)
    emptied_sessions = asks("erase_emptied", "nodes", column)
    summarised = asks("erase_summarised", "nodes", list)

    def listed(self, targets: ErasureTargets) -> Iterator[tuple[str, str]]:
        if targets.whole_space:
            return self._sql.each("erase_space_listed", {"space": targets.space})
        values = {name: json.dumps(getattr(targets, name)) for name in _LISTED}
        return self._sql.each("erase_rows_listed", values)

    said_in_chats = asks("erase_said_in_chats", "owner", first)
    changes_by = asks("erase_changes_by", "owner", first)
