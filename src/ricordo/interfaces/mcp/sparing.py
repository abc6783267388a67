"""The SDK without what a server over standard streams never uses: a client is waiting while it loads.

Its packages bring in a client, a second kind of server and web servers for them, and pydantic builds a validator for
each of some thousand models at once. Left out until somebody asks for them, that is a third of the work until the first
answer, about 0.3 and 0.2 of 1.6 seconds. Both use public names only (`__path__`, `model_config`); where the SDK is
loaded already, nothing is done.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType

_PACKAGES = ("mcp", "mcp.server")


class _Spared(ModuleType):
    """A package that runs its own code when it is first asked for something; its modules are found at once."""

    def __getattr__(self, name: str) -> object:
        loader = None if self.__spec__ is None else self.__spec__.loader
        if name.startswith("__") or loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on it is an ordinary one
        loader.exec_module(self)
        return getattr(self, name)


def spare_packages() -> None:
    """Make the SDK's packages known without running their own code.

    Raises:
        ImportError: the SDK is not installed.
    """
    if "mcp" in sys.modules:
        return
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is None:
            raise ImportError(f"there is no {name}", name=name)
        module = module_from_spec(spec)
        module.__class__ = _Spared
        sys.modules[name] = module
        package, _, own = name.rpartition(".")
        if package:
            setattr(sys.modules[package], own, module)


@contextmanager
def built_when_used() -> Iterator[None]:
    """Models that are defined inside get their validators when they are first used."""
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]
