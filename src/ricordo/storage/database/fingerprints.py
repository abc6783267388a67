"""Keyed hashes in place of what must not be kept. The key is random and the store's own."""

from __future__ import annotations

import os
from hashlib import blake2b

from ricordo.storage.database.statements import Statements

FINGERPRINT_KEY = "fingerprint_key"


def fingerprint_key(sql: Statements) -> bytes:
    """What the store's fingerprints are keyed with, made at first use; random, so that no two stores have the same."""
    known = sql.meta(FINGERPRINT_KEY)
    if known is None:
        known = os.urandom(32).hex()
        sql.rows("meta_put", {"name": FINGERPRINT_KEY, "value": known})
    return bytes.fromhex(known)


def id_fingerprint(key: bytes, node_id: str) -> bytes:
    """What is kept of the id of a memory that was erased."""
    return blake2b(node_id.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
