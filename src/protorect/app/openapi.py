"""The OpenAPI description of the HTTP API, made from the table of calls."""

from pathlib import Path
from typing import Any

from protorect import __version__
from protorect.app.calls import CALLS, Call, Query
from protorect.app.events import SINCE

_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    Path: {"type": "string"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    object: {},
}
_CODES = {
    "400": "something in the request is wrong",
    "401": "the token is missing or wrong",
    "403": "another host or origin",
    "404": "no such picture, class, group or act",
    "409": "somebody else labeled one of the pictures since that revision, or the name is taken",
    "413": "the request is too large",
    "429": "too many listeners",
}


def schema(expected: Any) -> dict[str, Any]:
    """The JSON schema of a description as of `_utils.documents`."""
    if isinstance(expected, type):
        return _TYPES[expected]
    if isinstance(expected, range):
        return {"type": "integer", "minimum": expected.start, "maximum": expected.stop - 1}
    if isinstance(expected, set):
        return {"anyOf": [schema(one) for one in sorted(expected, key=repr)]}
    if isinstance(expected, list):
        return {"type": "array", "items": schema(expected[0])}
    if isinstance(expected, dict):
        return _object(expected)
    return {"type": "null"} if expected is None else {"const": expected}


def _object(expected: dict[Any, Any]) -> dict[str, Any]:
    if str in expected:
        return {"type": "object", "additionalProperties": schema(expected[str])}
    properties = {name.removesuffix("?"): schema(one) for name, one in expected.items()}
    required = [name for name in expected if not name.endswith("?")]
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return found | ({"required": required} if required else {})


def _parameter(name: str, one: Query) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "text": {"type": "string"},
        "number": {"type": "integer", "minimum": 0, "maximum": one.maximum},
        "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "choice": {"type": "string", "enum": list(one.choices)},
        "choices": {"type": "array", "items": {"type": "string", "enum": list(one.choices)}},
    }
    lists = {"style": "form", "explode": False} if one.kind in ("numbers", "choices") else {}
    return {
        "name": name,
        "in": "query",
        "description": one.summary,
        "required": one.required,
        "schema": kinds[one.kind],
        **lists,
    }


def _operation(call: Call) -> dict[str, Any]:
    parameters = [_parameter(name, one) for name, one in call.query.items()]
    if "{number}" in call.path:
        number = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
        parameters.insert(0, {"name": "number", "in": "path", "required": True, "schema": number})
    content = {call.media: {"schema": {} if call.media == "application/json" else _BINARY}}
    found: dict[str, Any] = {
        "summary": call.summary,
        "parameters": parameters,
        "responses": {"200": {"description": "the answer", "content": content}} | _ERRORS,
    }
    if call.body is not None:
        body = {"application/json": {"schema": schema(call.body)}}
        found["requestBody"] = {"required": True, "content": body}
    return found


_BINARY = {"type": "string", "format": "binary"}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_ERRORS = {
    code: {"description": text, "content": {"application/json": {"schema": _ERROR}}}
    for code, text in _CODES.items()
}


def openapi() -> dict[str, Any]:
    """The description of all calls."""
    paths: dict[str, dict[str, Any]] = {}
    for call in CALLS:
        paths.setdefault(f"/api/{call.path}", {})[call.method.lower()] = _operation(call)
    events = {"200": {"description": "events", "content": {"text/event-stream": {"schema": {}}}}}
    paths["/api/events"] = {
        "get": {
            "summary": "Server-sent events",
            "parameters": [_parameter(name, one) for name, one in SINCE.items()],
            "responses": events | _ERRORS,
        }
    }
    token = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "protorect label", "version": __version__},
        "components": {"securitySchemes": {"token": token}},
        "security": [{"token": []}],
        "paths": paths,
    }
