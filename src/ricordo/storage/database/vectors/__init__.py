"""Nearest neighbours over int8 vectors in memory. See docs/decisions/0003-exact-int8-vectors.md."""

from ricordo.storage.database.vectors.codec import decode, encode, pack_segment, sketch_segment
from ricordo.storage.database.vectors.index import SKETCH_FROM, Room, VectorIndex, check_scales

__all__ = ["SKETCH_FROM", "Room", "VectorIndex", "check_scales", "decode", "encode", "pack_segment", "sketch_segment"]
