"""The OpenAPI document, made of the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from fsxwarm import __version__
from fsxwarm.client import wire
from fsxwarm.daemon.access import Rule
from fsxwarm.daemon.routes import ROUTES, Route
from fsxwarm.errors import CONSEQUENCES

_REF: Final = "#/components/schemas/{model}"
_TITLE: Final = "fsxwarm"
_WHO: Final = {
    Rule.MEMBER: "For whoever may talk to the daemon.",
    Rule.OWNER: "For its owner and administrators; to others it does not exist.",
}


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    bodies = [model for route in ROUTES if (model := route.body) is not None]
    _, bodies_schema = models_json_schema([(model, "validation") for model in bodies], ref_template=_REF)
    answers: list[tuple[Any, Any, TypeAdapter[Any]]] = [
        (route.answer.__name__, "serialization", TypeAdapter(route.answer))
        for route in ROUTES
        if route.answer is not None
    ]
    answers.append(("Failed", "serialization", TypeAdapter(wire.Failed)))
    _, answers_schema = TypeAdapter.json_schemas(answers, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    paths["/v1/openapi.json"] = {"get": _itself()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": _TITLE,
            "version": __version__,
            "description": "The daemon's API, over its unix socket. Callers are known by their socket's credentials.",
        },
        "paths": paths,
        "components": {"schemas": answers_schema.get("$defs", {}) | bodies_schema.get("$defs", {})},
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": (route.handler.__doc__ or "").split("\n")[0],
        "description": _WHO[route.rule],
        "parameters": [*_path_parameters(route), *_query_parameters(route.query)],
        "responses": {str(route.status): _success(route), **_errors()},
    }
    if route.body is not None:
        content = {"application/json": {"schema": {"$ref": _REF.format(model=route.body.__name__)}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(route: Route) -> Sequence[dict[str, Any]]:
    if "{id}" not in route.path:
        return []
    return [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]


def _query_parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": part}
        for name, part in schema.get("properties", {}).items()
    ]


def _success(route: Route) -> dict[str, Any]:
    described = {"description": HTTPStatus(route.status).phrase}
    if route.answer is None:
        return described
    kind = "application/x-ndjson" if route.stream else "application/json"
    return {**described, "content": {kind: {"schema": {"$ref": _REF.format(model=route.answer.__name__)}}}}


def _errors() -> dict[str, Any]:
    """Any call may fail in any of the ways of the one table of errors."""
    content = {"application/json": {"schema": {"$ref": _REF.format(model="Failed")}}}
    statuses = sorted({consequence.http for consequence in CONSEQUENCES.values()} | {405, 408})
    return {str(status): {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def _itself() -> dict[str, Any]:
    return {
        "operationId": "openapi",
        "summary": "This document.",
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}}},
    }
