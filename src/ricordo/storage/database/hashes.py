"""Hashes of rows and commits: seals, digests and the chain that links commits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

_SALT_BYTES = 8
_HASH_BYTES = 16
_SUM_BYTES = 8
_NO_SALT = b"\0" * _SALT_BYTES


def seal(values: Sequence[Any], salt: bytes | None = None) -> bytes:
    """Return the salt and the hash of a row's values. Because of the salt, an erased short secret cannot be guessed."""
    salt = os.urandom(_SALT_BYTES) if salt is None else salt
    # `ascii` is one call in C, and unlike `repr` it does not depend on the Unicode version of this Python.
    plain = ascii(tuple(values))
    return salt + blake2b(plain.encode(), digest_size=_HASH_BYTES, key=salt).digest()


def sealed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its seal as the last value."""
    return (*values, seal(values))


def is_sealed(values: Sequence[Any], given: bytes) -> bool:
    """Return whether a row is unchanged since it was sealed."""
    return seal(values, given[:_SALT_BYTES]) == given


def bare(given: bytes) -> bytes:
    """Return the hash of a seal without its salt. Only this is kept of an erased row."""
    return given[-_HASH_BYTES:]


def is_bare(given: bytes) -> bool:
    """Return whether a seal has lost its salt."""
    return len(given) == _HASH_BYTES


def digest(hashes: Iterable[bytes]) -> bytes:
    """Return one hash over all rows of a commit; their order makes no difference.

    Args:
        hashes: the bare hashes of the rows' seals, and the hashes of the former versions that the commit replaced.
    """
    return blake2b(b"".join(sorted(hashes)), digest_size=_HASH_BYTES).digest()


def erased_hash(row: tuple[Any, ...]) -> bytes:
    """Return the bare hash of what is left of an erased row: (made, what, hash, now)."""
    return bare(seal(row, _NO_SALT))


def former_hash(table: str, row: str, before: str) -> bytes:
    """Return the hash of a former version, salt included, for the digest of the commit that replaced or removed it."""
    return bare(seal((table, row, *sorted(json.loads(before).items())), _NO_SALT))


def chain(previous: bytes, commit: Sequence[Any]) -> bytes:
    """Return the hash of a commit.

    Args:
        previous: the hash of the previous commit.
        commit: seq, space, at, origin, run id, bare seal, digest.
    """
    plain = [previous.hex(), *(value.hex() if isinstance(value, bytes) else value for value in commit)]
    return bare(seal(plain, _NO_SALT))


def row_sum(*values: Any) -> int:
    """Return a number below 2^62 for a row without a seal. The schema keeps the sum of these numbers for each table."""
    parts = (value if isinstance(value, bytes) else ascii(value).encode() for value in values)
    return int.from_bytes(blake2b(b"\0".join(parts), digest_size=_SUM_BYTES).digest(), "little") >> 2
