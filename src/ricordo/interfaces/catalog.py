"""The catalog: every capability of a memory, with the descriptions for models and programs that call it.

Tools, routes and reference pages are made from these entries; the texts are in `catalog.toml`. The parameters come from
the method of `Memory`. The interface sets the owner and the origin of a text; callers cannot.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template
from typing import Any, Literal

from ricordo.errors import InvalidError
from ricordo.rights import Right, right_to

Effect = Literal["reads", "adds", "changes", "removes"]
ProfileName = Literal["core", "full", "keywords", "connector"]

BOUND = frozenset({"origin", "trust", "scope", "owner", "chat", "user_id", "chat_id", "all_owners", "model"})
"""Parameters that callers cannot set: the interface sets them or uses the default. `model` is one of them because it
decides where memories are sent."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capability:
    """One thing a memory can do.

    Attributes:
        method: The name of the method of `Memory` and of the route.
        tool: The name of the tool for agents.
        summary: The description that a model reads when it chooses a tool.
        effect: "adds" never removes anything; "removes" takes something out of answers or off the disk.
        is_idempotent: Whether calling it twice has the same effect as once.
        profiles: The sets of tools it belongs to, in addition to "full".
        shown: The parameters of the tool, in order; None for all. Routes accept all parameters.
        one_of: The parameters of the tool of which exactly one is given.
        renamed: Parameters that have another name in the tool.
        notes: Descriptions of parameters for which the method's docstring is not enough.
        is_tool_only: Whether it has no route, because it combines several methods or renames one.
        needs_files: Whether it works with local files, so that only the command line offers it.
        is_for_people: Whether it has a route and no tool, since only the user may call it, or a tool returns the same.
    """

    method: str
    tool: str
    summary: str
    effect: Effect
    is_idempotent: bool = False
    profiles: frozenset[ProfileName] = frozenset()
    shown: tuple[str, ...] | None = None
    one_of: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    is_tool_only: bool = False
    needs_files: bool = False
    is_for_people: bool = False

    @property
    def right(self) -> Right:
        """The permission and trust level that a caller needs."""
        return right_to(self.method)

    @property
    def title(self) -> str:
        return self.tool.replace("_", " ").capitalize()


def _expand(value: Any, texts: Mapping[str, str]) -> Any:
    """Replace every `$name` by the shared text of that name."""
    if isinstance(value, str):
        return Template(value).substitute(texts) if "$" in value else value
    if isinstance(value, dict):
        return {name: _expand(each, texts) for name, each in value.items()}
    return [_expand(each, texts) for each in value] if isinstance(value, list) else value


def _load() -> dict[str, Any]:
    tables = tomllib.loads((files("ricordo.interfaces") / "catalog.toml").read_text(encoding="utf-8"))
    texts: dict[str, str] = {}
    for name, text in tables["texts"].items():
        texts[name] = _expand(text, texts)
    return {name: _expand(table, texts) for name, table in tables.items()}


def _capability(entry: Mapping[str, Any]) -> Capability:
    shown = entry.get("shown")
    fields = {**entry, "profiles": frozenset(entry.get("profiles", ()))}
    lists = {"shown": None if shown is None else tuple(shown), "one_of": tuple(entry.get("one_of", ()))}
    return Capability(**fields | lists)


_TABLES = _load()

CATALOG: tuple[Capability, ...] = tuple(_capability(entry) for entry in _TABLES["capability"])

NOT_SHOWN: Mapping[str, str] = _TABLES["not_shown"]
"""Public methods of `Memory` that no interface offers, each with the reason."""

INSTRUCTIONS: Mapping[ProfileName, str] = _TABLES["instructions"]
"""The instructions for an agent that connects, by profile."""

WRITE_PATH: Mapping[str, Any] = _TABLES["write_path"]
"""The tools of the write path, and the prompt for an agent that uses them."""

RESOURCES, RESOURCE_TEMPLATES, PROMPTS = _TABLES["resource"], _TABLES["resource_template"], _TABLES["prompt"]
"""The resources and prompts that MCP clients offer to people."""

PROMPT_TEXTS: Mapping[str, str] = _TABLES["prompt_texts"]

RESPONSES: Mapping[str, str] = _TABLES["responses"]
"""The meaning of each error status of the routes."""


def routes() -> tuple[Capability, ...]:
    """Return the capabilities that have an HTTP route: one entry for each method."""
    return tuple(each for each in CATALOG if not each.is_tool_only and not each.needs_files)


def tools(profile: str = "core") -> tuple[Capability, ...]:
    """Return the tools of a profile.

    Args:
        profile: Names of profiles or tools, separated by commas.

    Raises:
        InvalidError: There is no such profile or tool.
    """
    available = [each for each in CATALOG if not (each.needs_files or each.is_for_people)]
    chosen = [each for name in _parts(profile) for each in _select(name, available)]
    return tuple(dict.fromkeys(chosen))


def instructions(profile: str) -> str:
    """Return the instructions for an agent that gets the tools of a profile or list."""
    parts = _parts(profile)
    return next((text for name, text in INSTRUCTIONS.items() if name in parts), _TABLES["texts"]["data_only"])


def _parts(profile: str) -> list[str]:
    return [part.strip() for part in profile.split(",") if part.strip()]


def _select(name: str, available: Sequence[Capability]) -> list[Capability]:
    if name == "full":
        return [each for each in available if not each.is_tool_only or "core" in each.profiles]
    found = [each for each in available if name in each.profiles or each.tool == name]
    if not found:
        raise InvalidError(
            f"profile: there is no profile or tool {name!r}",
            hint=f"choose {', '.join(INSTRUCTIONS)}, or names of tools separated by commas",
        )
    return found
