"""The OpenAPI description of the REST routes, from the same catalog as the routes."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from ricordo.interfaces.catalog import CATALOG, Capability, routes
from ricordo.interfaces.schema import Schema, input_schema, output_schema
from ricordo.portability.importers import FORMATS

_ERRORS = {
    "400": "The request is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "The caller may not do this.",
    "404": "It does not exist, or is not the caller's.",
    "405": "Only POST is allowed here.",
    "409": "It conflicts with the state of the store.",
    "413": "The body is too large.",
    "415": "The body is not application/json.",
    "422": "An argument is not valid.",
    "429": "Too many requests.",
    "500": "A defect, or a damaged store.",
    "503": "Busy or closing: try again.",
}

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
    """Return the whole description."""
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
                status: _answer(text, {"$ref": "#/components/schemas/Error"}) for status, text in _ERRORS.items()
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
        "description": f"Permission: {capability.access}.",
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
        "description": "Permission: write.",
        "tags": ["adds"],
        "parameters": [
            {"name": "format", "in": "query", "schema": {"type": "string", "enum": [each.name for each in FORMATS]}},
            {"name": "dry_run", "in": "query", "schema": {"type": "boolean", "default": False}},
        ],
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}},
        "responses": {"200": _answer("Read.", answer)} | _errors(),
    }


def _answer(text: str, schema: Schema) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _errors() -> Schema:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in _ERRORS}


def _shared(schema: Schema, schemas: dict[str, Schema], method: str) -> Schema:
    """Move the definitions of a schema to where OpenAPI keeps them; each name gets one meaning."""
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
    if places and all(each == places[0] for each in places):  # a pair of one type, in a form that more readers know
        del renamed["prefixItems"]
        renamed["items"] = places[0]
    target = renamed.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        renamed["$ref"] = f"#/components/schemas/{names[target.removeprefix('#/$defs/')]}"
    return renamed
