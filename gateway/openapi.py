# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document: routes read their bodies themselves, so their request schemas are described here."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tritone.gateway.schemas.chat import ChatBatchRequest, ChatRequest
from tritone.gateway.schemas.completions import CompletionRequest
from tritone.gateway.schemas.responses import ErrorBody

_REFERENCE = "#/components/schemas/{model}"
_REQUESTS = (ChatRequest, ChatBatchRequest, CompletionRequest)
_DESCRIPTIONS = {
    400: "The request breaks a rule; `param` names the field",
    401: "No valid API key",
    404: "No such model",
    408: "The body did not arrive in time",
    413: "The body is too large",
    415: "Not application/json, or compressed",
    429: "Too many requests of this key at once",
    431: "The request's headers are too large",
    500: "A fault of the server",
    503: "The server is full or away; `Retry-After` says when to try again",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer with these errors."""
    return {status: {"model": ErrorBody, "description": _DESCRIPTIONS[status]} for status in statuses}


def generating_route(request: type[BaseModel], answer: type[BaseModel], *, is_streamed: bool) -> dict[str, Any]:
    """Keyword arguments for a route that answers with a `GenerationResponse`."""
    success: dict[str, Any] = {"model": answer, "description": "The answer"}
    if is_streamed:
        event = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
        success["content"] = {"text/event-stream": {"schema": event}}
    body = {"application/json": {"schema": {"$ref": _REFERENCE.format(model=request.__name__)}}}
    return {
        "response_model": None,
        "responses": {200: success, **error_responses(400, 401, 404, 408, 413, 415, 429, 431, 500, 503)},
        "openapi_extra": {"requestBody": {"required": True, "content": body}},
    }


def document(app: FastAPI, *, needs_key: bool) -> dict[str, Any]:
    """The OpenAPI document of the application."""
    described = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, definitions = models_json_schema([(model, "validation") for model in _REQUESTS], ref_template=_REFERENCE)
    components = described.setdefault("components", {})
    components.setdefault("schemas", {}).update(definitions["$defs"])
    if needs_key:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"key": []}]
    for path in described["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)  # FastAPI's default; validation errors are 400 here
    return described
