"""Exact nearest neighbours over int8 vectors in memory. See docs/decisions/0003-exact-int8-vectors.md."""

from ricordo.store.sqlite.vectors.codec import decode, encode, pack_segment
from ricordo.store.sqlite.vectors.index import Room, VectorIndex

__all__ = ["Room", "VectorIndex", "decode", "encode", "pack_segment"]
