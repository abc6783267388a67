"""Parameters, JSON schemas and argument checks of capabilities, derived from the signatures of the methods."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from importlib import metadata
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import pydantic
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from ricordo.errors import InvalidError
from ricordo.interfaces.catalog import BOUND, CATALOG, RESPONSES, Capability, routes
from ricordo.interfaces.serialize import withhold
from ricordo.memory import Memory
from ricordo.model import Category, Fact, Node, NodeType, Origin, Review, Run
from ricordo.portability.importers import FORMATS
from ricordo.rights import permission_for
from ricordo.text.names import likeness, name_words, untitled_words

Schema = dict[str, Any]

_HIDDEN = BOUND | {"progress", "of_project"}
_LARGEST = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

_RANGES: Mapping[str, tuple[float, float]] = {
    "limit": (1, 1_000),
    "confidence": (0, 1),
    "budget": (1, _LARGEST),
    "before": (0, _LARGEST),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter: `name` in the method, `shown` for callers."""

    name: str
    shown: str
    annotation: Any
    default: Any
    description: str

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def item_fields(self) -> tuple[str, ...]:
        """The fields of each item, if the value is a list of objects."""
        model = next(iter(get_args(self.annotation)), None)
        return tuple(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else ()


# tools whose signature differs from the method's, because models or connectors expect that


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItem:
    """A search result in the format that connectors (such as ChatGPT's) expect."""

    id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """Search results, best first."""

    results: tuple[FoundItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A complete memory in the format that connectors expect."""

    id: str
    title: str
    text: str
    url: str
    metadata: Mapping[str, str]


async def _remember_fact(
    memory: Memory,
    content: str | Sequence[str],
    *,
    about: Sequence[str] = (),
    category: Category | None = None,
    type: NodeType = "semantic",
    tags: Sequence[str] = (),
    expires: datetime | str | None = None,
    at: datetime | str | None = None,
    shared: bool = False,
    origin: Origin = "agent",
    of_project: Collection[str] = (),
) -> Sequence[Node]:
    """Store one or several facts that share the other fields. Those in `of_project` are shared with the chat."""
    texts = [content] if isinstance(content, str) else content
    if not texts:
        raise InvalidError("content is empty", hint="give one sentence, or a list of sentences")
    facts = [
        Fact(
            content=text,
            type=type,
            category=category,
            about=about if len(texts) == 1 else _named_in(text, about),
            tags=tags,
            expires=expires,
            at=at,
            shared=shared or text in of_project,
            origin=origin,
        )
        for text in texts
    ]
    return await memory.remember_many(facts)


def _named_in(text: str, names: Sequence[str]) -> Sequence[str]:
    """Return those of the names given for several sentences that one of them contains; all names if it has none."""
    words = name_words(text)
    return [
        name for name in names if any(likeness(word, first) for first in untitled_words(name)[:1] for word in words)
    ] or names


async def _search(memory: Memory, query: str) -> FoundItems:
    hits = (await memory.search(query)).hits
    return FoundItems(results=tuple(FoundItem(id=hit.id, **_reference(hit.id, hit.content)) for hit in hits))


async def _fetch(memory: Memory, id: str) -> Document:
    node = withhold(await memory.get(id))
    metadata = {
        "type": node.type,
        "category": node.category,
        "event_time": node.event_time.isoformat(),
        "origin": node.origin,
        "place": node.place,
        "about": ", ".join(node.about),
    }
    known = {name: value for name, value in metadata.items() if value}
    return Document(id=node.id, text=node.content, metadata=known, **_reference(node.id, node.content))


_TITLE_CHARS = 80


def _reference(id: str, content: str) -> dict[str, str]:
    line = " ".join(content.split())
    title = line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"
    return {"title": title, "url": f"ricordo://memory/{id}"}


_TOOL_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "remember_fact": _remember_fact,
    "search": _search,
    "fetch": _fetch,
}


def function_of(capability: Capability) -> Callable[..., Any]:
    """Return the function that implements a capability; its first argument is the memory."""
    if capability.is_tool_only and capability.tool in _TOOL_FUNCTIONS:
        return _TOOL_FUNCTIONS[capability.tool]
    return cast(Callable[..., Any], getattr(Memory, capability.method))


# parameters, schemas and the check of a call


@cache
def parameters(capability: Capability, *, as_tool: bool) -> tuple[Parameter, ...]:
    """Return the parameters for callers, in the method's order; a tool may have fewer than a route."""
    work = function_of(capability)
    hints = get_type_hints(work)
    documented = _documented(inspect.getdoc(work) or "")
    own = [each for each in inspect.signature(work).parameters.values() if each.name not in ("self", "memory")]
    shown = capability.shown if as_tool else None
    hidden = _HIDDEN if capability.needs_files else _HIDDEN | {"path"}  # a path on the machine of the store
    if capability.method == "erase":  # names the caller, and nobody else is accepted
        hidden -= {"owner"}
    return tuple(
        Parameter(
            name=each.name,
            shown=capability.renamed.get(each.name, each.name) if as_tool else each.name.rstrip("_"),
            annotation=_accepted(hints[each.name], name=each.name),
            default=each.default,
            description=capability.notes.get(each.name) or _spelled_out(documented.get(each.name, ""), each.name),
        )
        for each in own
        if each.name not in hidden and (shown is None or each.name in shown)
    )


_ELSEWHERE = re.compile(r"as in `(\w+)`\.?")


def _spelled_out(description: str, name: str) -> str:
    """Return the description of a parameter; that of another method if this one only refers to it."""
    found = _ELSEWHERE.fullmatch(description)
    if found is None:
        return description
    there = _documented(inspect.getdoc(getattr(Memory, found[1])) or "").get(name, "")
    return _spelled_out(there, name) if there else description


def _documented(doc: str) -> dict[str, str]:
    """Return the descriptions in the `Args:` section of a docstring, by parameter."""
    found: dict[str, str] = {}
    _, _, rest = doc.partition("Args:\n")
    names: list[str] = []
    for line in rest.splitlines():
        if line and not line.startswith("    "):
            break
        head = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if head:
            names = head[1].split(", ")
            found |= dict.fromkeys(names, head[2])
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


@cache
def argument_model(capability: Capability, *, as_tool: bool) -> type[BaseModel]:
    """Return the pydantic model that checks the arguments of a call."""
    taken = parameters(capability, as_tool=as_tool)
    members: Any = {each.shown: _field(each) for each in taken}
    rename: Any = pydantic.model_validator(mode="before")(_with_synonyms({each.shown: each.name for each in taken}))
    made: Any = create_model(
        capability.tool,
        __config__=ConfigDict(extra="forbid", protected_namespaces=()),
        __validators__={"rename": rename},
        **members,
    )
    return cast(type[BaseModel], made)


_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "content", "query", "question", "message"),
    "keywords": ("keywords", "query", "text", "question"),
    "prompt": ("prompt", "text", "query", "question", "message"),
    "question": ("question", "text", "query", "prompt"),
    "content": ("content", "text", "fact", "memory"),
    "id": ("id", "memory_id", "session", "session_id"),
    "name": ("name", "entity", "space"),
    "space": ("space", "name"),
    "entity": ("entity", "name"),
    "tag": ("tag", "tags"),
    "tags": ("tags", "tag"),
    "commit_or_run": ("commit_or_run", "change", "id"),
    "item": ("item", "review", "id"),
    "limit": ("limit", "top_k", "max_results"),
    "session": ("session", "session_id", "id"),
}
"""Other names that callers use for a parameter, by its name in the method. Every interface accepts them."""


def _with_synonyms(names: Mapping[str, str]) -> Callable[[Any], Any]:
    """Return a validator that replaces a synonym by the name of its parameter, unless that parameter is given, too.

    Args:
        names: The name of each parameter in the method, by its name for callers.
    """

    def rename(given: Any) -> Any:
        if not isinstance(given, dict) or not given.keys() - names.keys():
            return given
        known = dict(given)
        for shown, name in names.items():
            other = next((each for each in _SYNONYMS.get(name, ()) if each in known and each not in names), None)
            if shown not in known and other is not None:
                known[shown] = known.pop(other)
        return known

    return rename


def _split(given: Any) -> Any:
    """Split tags that were given as one comma-separated text."""
    return [each.strip() for each in given.split(",") if each.strip()] if isinstance(given, str) else given


@cache
def input_schema(capability: Capability, *, as_tool: bool, can_share: bool = True) -> Schema:
    """Return the JSON schema of a call's arguments.

    Args:
        can_share: Whether the caller has a chat or space to share with. If not, `shared` is left out.
    """
    schema = tidy(argument_model(capability, as_tool=as_tool).model_json_schema())
    if as_tool:
        for each in (schema, *schema.get("$defs", {}).values()):
            for name in not_offered(can_share=can_share):
                each.get("properties", {}).pop(name, None)
    return cast(Schema, _shorten(schema) if as_tool else schema)


def brief_output_schema(capability: Capability) -> Schema:
    """Return a short schema of an answer for a model, to save tokens: an object and, for tools in the core profile that
    read or add, the names of its members and of the members of list items. Every member is optional.
    """
    if "core" not in capability.profiles or capability.effect not in ("reads", "adds"):
        return {"type": "object"}
    return {"type": "object", "properties": dict(_members(capability))}


@cache
def empty_lists(capability: Capability) -> Mapping[str, list[Any]]:
    """Return an empty list for each member of an answer that is a list."""
    return {name: [] for name, each in _members(capability).items() if each.get("type") == "array"}


@cache
def _members(capability: Capability) -> Mapping[str, Schema]:
    """Return the short schemas of the members of an answer; of one that is no object, as `result`."""
    whole = output_schema(capability)
    defined = whole.get("$defs", {})
    is_object = _resolved(whole, defined).get("type") == "object" and "properties" in _resolved(whole, defined)
    members = _resolved(whole, defined)["properties"] if is_object else {"result": whole}
    return {name: _brief(each, defined) for name, each in members.items()}


def _brief(schema: Schema, defined: Schema) -> Schema:
    found = _resolved(schema, defined)
    kind = found.get("type")
    if kind == "array" and "properties" in (inner := _resolved(found.get("items", {}), defined)):
        names = {name: Schema() for name in inner["properties"]}
        return {"type": "array", "items": {"type": "object", "properties": names}}
    return {"type": kind} if kind in ("array", "object") else {}


def _resolved(schema: Schema, defined: Schema) -> Schema:
    """Resolve a reference, and a union with null to its other type; return {} for a union of several types."""
    if "$ref" in schema:
        return _resolved(defined[schema["$ref"].rpartition("/")[2]], defined)
    others = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return (_resolved(others[0], defined) if len(others) == 1 else {}) if "anyOf" in schema else schema


@cache
def output_schema(capability: Capability) -> Schema:
    """Return the JSON schema of an answer."""
    hints = get_type_hints(function_of(capability))
    return cast(Schema, tidy(TypeAdapter(hints["return"]).json_schema(mode="serialization")))


def check_arguments(capability: Capability, given: object, *, as_tool: bool, can_share: bool = True) -> dict[str, Any]:
    """Check a call's arguments; return them as the method expects them: by its names, with its types.

    Args:
        given: The arguments, as an object or as JSON in bytes. JSON is read strictly: "5" is not a number.
        can_share: As in `input_schema`.

    Raises:
        InvalidError: An argument is missing, unknown or of the wrong type; the message names it.
    """
    model = argument_model(capability, as_tool=as_tool)
    try:
        if isinstance(given, bytes):
            values = model.model_validate_json(given or b"{}", strict=True)
        else:
            values = model.model_validate(given)
    except ValidationError as error:
        hidden = not_offered(can_share=can_share) if as_tool else frozenset()
        raise InvalidError(
            first_problem(error), hint=_taken(capability, error, as_tool=as_tool, hidden=hidden)
        ) from error
    if as_tool and capability.one_of and sum(getattr(values, name) is not None for name in capability.one_of) != 1:
        raise InvalidError(f"give exactly one of {', '.join(capability.one_of)}")
    names = {each.shown: each.name for each in parameters(capability, as_tool=as_tool)}
    return {names[shown]: _plain(getattr(values, shown)) for shown in values.model_fields_set}


def _taken(capability: Capability, error: ValidationError, *, as_tool: bool, hidden: Collection[str]) -> str:
    """Return which parameters a call takes or, if one field of an item is wrong, which fields each item takes."""
    where = capability.tool if as_tool else path_of(capability)
    by_name = {each.shown: each.item_fields for each in parameters(capability, as_tool=as_tool)}
    first, *inside = error.errors(include_url=False)[0]["loc"] or ("",)  # () if the body is not JSON
    of_items = by_name.get(str(first), ()) if inside else ()
    names = [name for name in of_items or by_name if name not in hidden]
    return f"{f'each of {first}' if of_items else where} takes {', '.join(names) or 'no parameters'}"


def not_offered(*, can_share: bool) -> frozenset[str]:
    """Return the parameters and fields that a tool does not offer: only the owner's own programs keep secrets."""
    return frozenset({"keep_secrets"} if can_share else {"keep_secrets", "shared"})


_TYPE = re.compile(r"str|bool|int|float|.*\[.*")
"""The types that pydantic names in the location of an error, if a value may have one of several."""


def first_problem(error: ValidationError) -> str:
    """Return the first error that pydantic reports, with its location and without the caller's input."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"] if not _TYPE.fullmatch(str(part)))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def closed_model(name: str, members: Mapping[str, Any]) -> type[BaseModel]:
    """Return a model with the given members, (type, default) by name, that rejects any other."""
    made: Any = create_model(name, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **members)
    return cast(type[BaseModel], made)


def _listed(given: Any) -> Any:
    """Return one name that was given as a text as a list."""
    return [given] if isinstance(given, str) else given


_FROM_TEXT: Mapping[str, Callable[[Any], Any]] = {"tags": _split, "about": _listed, "aliases": _listed}
"""What makes a list of a text, by the name of the parameter."""


def _field(parameter: Parameter) -> Any:
    default = ... if parameter.is_required else parameter.default
    return (parameter.annotation, pydantic.Field(default, description=parameter.description or None))


# from Python types to JSON types


def _accepted(annotation: Any, *, name: str) -> Any:
    """Return the type to accept from callers: text for times, the id of a review or run, objects for dataclasses."""
    if annotation in (datetime, Review, Run):
        return str
    if annotation in (int, float):
        least, most = _RANGES.get(name, (-_LARGEST, _LARGEST))
        return Annotated[annotation, pydantic.Field(ge=least, le=most)]
    if is_dataclass(annotation) and isinstance(annotation, type):
        return _object_model(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return Union[tuple(dict.fromkeys(_accepted(each, name=name) for each in inner))]  # noqa: UP007  # made here
    if origin is not None and origin is not Literal and issubclass(origin, Sequence):
        listed: Any = list[_accepted(inner[0], name=name)]  # type: ignore[misc]
        return Annotated[listed, pydantic.BeforeValidator(_FROM_TEXT[name])] if name in _FROM_TEXT else listed
    return annotation


_DATACLASS_OF: dict[type[BaseModel], type] = {}
"""The dataclass to build from a caller's object, by the model that checks the object."""


@cache
def _object_model(kind: type) -> type[BaseModel]:
    hints = get_type_hints(kind)
    members = {
        each.name: (_accepted(hints[each.name], name=each.name), ... if each.default is MISSING else each.default)
        for each in fields(kind)
        if each.name not in _HIDDEN
    }
    model = closed_model(kind.__name__, members)
    _DATACLASS_OF[model] = kind
    return model


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _DATACLASS_OF[type(value)](**{name: _plain(getattr(value, name)) for name in value.model_fields_set})
    return [_plain(each) for each in value] if isinstance(value, list) else value


# shorter schemas


_UNTELLING: tuple[tuple[str, Any], ...] = (
    ("default", False),
    ("default", None),
    ("default", []),
    ("additionalProperties", False),
)


def _shorten(schema: Any) -> Any:
    """Shorten a schema to save a model's tokens: drop null for optional members, huge bounds, and the defaults null,
    false and [].
    """
    if isinstance(schema, list):
        return [_shorten(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    shorter = {
        name: _shorten(each)
        for name, each in schema.items()
        if each not in (_LARGEST, -_LARGEST) and (name, each) not in _UNTELLING
    }
    choices = [each for each in shorter.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) > 1 and choices[1] == {"items": choices[0], "type": "array"}:  # one value, or a list of such values
        choices = [choices[0], {"type": "array"}]
        shorter["anyOf"] = [*choices, {"type": "null"}] if {"type": "null"} in shorter["anyOf"] else choices
    if choices and len(choices) < len(shorter["anyOf"]):
        shorter = {
            name: each for name, each in shorter.items() if name != "anyOf" and (name, each) != ("default", None)
        }
        shorter |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    return shorter


_INNER = ("anyOf", "items", "additionalProperties", "prefixItems")


def tidy(schema: Any) -> Any:
    """Drop generated titles and the internal member `key`."""
    if isinstance(schema, list):
        return [tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {name: tidy(each) if name in _INNER else each for name, each in schema.items() if name != "title"}
    for group in ("properties", "$defs"):
        if group in tidied:
            tidied[group] = {name: tidy(each) for name, each in tidied[group].items() if name != "key"}
    if "required" in tidied:
        tidied["required"] = [name for name in tidied["required"] if name != "key"]
    if isinstance(tidied.get("description"), str) and "type" in tidied and "properties" in tidied:
        del tidied["description"]  # the docstring of a class is for developers
    return tidied


_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"}},
        }
    },
}


def path_of(capability: Capability) -> str:
    """Return the path of a capability."""
    return f"/v1/{capability.method.rstrip('_')}"


def document() -> Schema:
    """Return the OpenAPI document of all routes."""
    schemas: dict[str, Schema] = {"Error": _ERROR}
    paths = {path_of(each): {"post": _operation(each, schemas)} for each in routes()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ricordo",
            "version": metadata.version("ricordo"),
            "description": "A long-term memory for AI agents. The token decides whose memory a call reaches. With "
            "`Accept: text/event-stream`, a call answers with events: `progress`, then `result` or `error`.",
        },
        "paths": paths | {"/v1/import": {"post": _upload(schemas)}},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                status: _answer(text, {"$ref": "#/components/schemas/Error"}) for status, text in RESPONSES.items()
            },
        },
        "security": [{"token": []}],
    }


def _operation(capability: Capability, schemas: dict[str, Schema]) -> Schema:
    given = _shared(input_schema(capability, as_tool=False), schemas, capability.method)
    answer = _shared(output_schema(capability), schemas, capability.method)
    return {
        "operationId": capability.method.rstrip("_"),
        "summary": capability.summary,
        "description": f"Permission: {permission_for(capability.method)}. Trust: at least {capability.right.trust}.",
        "tags": [capability.effect],
        "requestBody": {"required": bool(given.get("required")), "content": {"application/json": {"schema": given}}},
        "responses": {"200": _answer("Done.", answer)} | _errors(),
    }


def _upload(schemas: dict[str, Schema]) -> Schema:
    importing = next(each for each in CATALOG if each.method == "import_")
    answer = _shared(output_schema(importing), schemas, "import")
    return {
        "operationId": "import",
        "summary": "Import a file of conversations or memories: the file is the body.",
        "description": f"Permission: {importing.right.access}. Trust: at least {importing.right.trust}.",
        "tags": ["adds"],
        "parameters": [
            {"name": "format", "in": "query", "schema": {"type": "string", "enum": [each.name for each in FORMATS]}},
            {"name": "me", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "name", "in": "query", "schema": {"type": "string"}},
            {"name": "shared", "in": "query", "schema": {"type": "boolean", "default": False}},
            {"name": "dry_run", "in": "query", "schema": {"type": "boolean", "default": False}},
        ],
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}},
        "responses": {"200": _answer("Read.", answer)} | _errors(),
    }


def _answer(text: str, schema: Schema) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _errors() -> Schema:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in RESPONSES}


def _shared(schema: Schema, schemas: dict[str, Schema], method: str) -> Schema:
    """Move a schema's definitions to OpenAPI's shared `schemas`, renaming one if its name has another definition."""
    moved: dict[str, str] = {}
    inner = schema.get("$defs", {})
    for name, each in inner.items():
        known = schemas.get(name)
        moved[name] = name if known is None or known == _renamed(each, {n: n for n in inner}) else f"{name}_{method}"
    for name, each in inner.items():
        schemas[moved[name]] = _renamed(each, moved)
    return dict(_renamed({name: each for name, each in schema.items() if name != "$defs"}, moved))


def _renamed(schema: Any, names: dict[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {name: _renamed(each, names) for name, each in schema.items()}
    places = renamed.get("prefixItems")
    if places and all(
        each == places[0] for each in places
    ):  # all items have the same type: use the more common `items`
        del renamed["prefixItems"]
        renamed["items"] = places[0]
    target = renamed.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        renamed["$ref"] = f"#/components/schemas/{names[target.removeprefix('#/$defs/')]}"
    return renamed
