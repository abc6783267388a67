"""The row of a commit, its place in the hash chain, and the digest of what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ricordo.clock import to_ms
from ricordo.model import Reason
from ricordo.storage.database.hashes import bare, chain, digest, seal
from ricordo.storage.database.integrity import hashes_of
from ricordo.storage.database.queries import sql
from ricordo.storage.database.statements import Statements

CommitValues = tuple[Any, ...]
"""What a commit's hash is over, the digest last."""


def put_commit(
    snapshot: Statements, head: bytes, seq: int, *, space: int, reason: Reason, at: datetime, hashes: Sequence[bytes]
) -> CommitValues:
    """Write the row of a commit, to which its rows refer.

    Args:
        head: the hash of the commit before.
        hashes: the bare hashes of the seals of its rows, as far as they are known now.
    """
    words = seal((reason.actor, reason.reason))
    values = (seq, space, to_ms(at), reason.origin, reason.run_id, bare(words), digest(hashes))
    row = (*values[:3], reason.actor, reason.origin, reason.reason, reason.run_id, words, values[-1])
    snapshot.connection.execute(sql("commit_insert"), (*row, chain(head, values)))
    return values


def settle_digest(snapshot: Statements, head: bytes, values: CommitValues) -> None:
    """Take the digest over the rows as they were written in the end: one may be written twice, or be there already."""
    settled = (*values[:-1], digest(hashes_of(snapshot.connection, values[0])))
    if settled != values:
        told = {"seq": values[0], "digest": settled[-1], "hash": chain(head, settled)}
        snapshot.connection.execute(sql("commit_digest"), told)
