"""A storage backend in plain dictionaries: slow, obvious, and what other backends are compared with."""

from tests.contract.reference.store import ReferenceStore, forget_all

__all__ = ["ReferenceStore", "forget_all"]
