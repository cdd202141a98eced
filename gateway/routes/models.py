# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`GET /v1/models` and `GET /v1/models/{id}`: the pipelines that are loaded."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request

from tritone.gateway.catalog import Pipeline
from tritone.gateway.http_errors import ModelNotFound
from tritone.gateway.openapi import error_responses
from tritone.gateway.record import record_of
from tritone.gateway.schemas.generation import MAX_MODEL_NAME_CHARS, MODEL_NAME_PATTERN
from tritone.gateway.schemas.responses import ModelCard, ModelList
from tritone.gateway.services import Services

# Anything else is no model's name, and not worth a question to the inference server.
_NAME = re.compile(MODEL_NAME_PATTERN)
LIST_PATH = "/v1/models"
ONE_PATH = "/v1/models/{model}"


def router(services: Services) -> APIRouter:
    """The routes of this module."""
    routes = APIRouter(tags=["models"])

    @routes.get(LIST_PATH, responses=error_responses(401, 431, 500, 503))
    async def list_models(request: Request) -> ModelList:
        """Every model that can be asked for."""
        record_of(request.scope).route = LIST_PATH
        return ModelList(object="list", data=[_card(pipeline) for pipeline in await services.catalog.pipelines()])

    @routes.get(ONE_PATH, responses=error_responses(401, 404, 431, 500, 503))
    async def retrieve_model(model: str, request: Request) -> ModelCard:
        """One model."""
        record_of(request.scope).route = ONE_PATH
        if len(model) > MAX_MODEL_NAME_CHARS or not _NAME.fullmatch(model):
            raise ModelNotFound()
        return _card(await services.catalog.find(model))

    return routes


def _card(pipeline: Pipeline) -> ModelCard:
    capabilities = pipeline.capabilities
    return ModelCard(
        id=pipeline.name,
        object="model",
        created=capabilities.created,
        owned_by=capabilities.owned_by,
        max_model_len=capabilities.context_tokens,
        routes=capabilities.routes,
        supports_tools=capabilities.tool_format is not None,
    )
