# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`POST /v1/completions`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tritone.gateway.answers import Identity
from tritone.gateway.calls import new_call, shared_params
from tritone.gateway.catalog import Pipeline, Route
from tritone.gateway.completion_answers import CompletionBody, CompletionEvents
from tritone.gateway.generation import GenerationResponse, Plan
from tritone.gateway.openapi import generating_route
from tritone.gateway.record import RequestRecord
from tritone.gateway.schemas.completions import UNSUPPORTED_FIELDS, CompletionRequest, Prompt
from tritone.gateway.schemas.responses import Completion
from tritone.gateway.schemas.validation import validate
from tritone.gateway.services import Services
from tritone.gateway.transport import GenerationCall

PATH = "/v1/completions"


def router(services: Services) -> APIRouter:
    """The routes of this module."""
    routes = APIRouter(tags=["completions"])

    @routes.post(PATH, **generating_route(CompletionRequest, Completion, is_streamed=True))
    async def create_completion() -> Response:
        """Continue one or several prompts."""
        return GenerationResponse(services, PATH, plan)

    async def plan(body: dict[str, Any], record: RequestRecord) -> Plan:
        request = validate(CompletionRequest, body, UNSUPPORTED_FIELDS)
        pipeline = await services.catalog.choose(request.model, Route.COMPLETIONS)
        record.model = pipeline.name
        params = shared_params(request, pipeline, record)
        calls = [_call(pipeline, params, prompt, record) for prompt in request.prompt]
        identity = Identity.mint("cmpl", pipeline.name, pipeline.fingerprint)
        num_choices = request.n or 1
        if request.stream:
            events = CompletionEvents(
                identity, num_calls=len(calls), num_choices=num_choices, wants_usage=request.wants_usage
            )
            return Plan(calls, events, None)
        return Plan(calls, None, CompletionBody(identity, num_calls=len(calls), num_choices=num_choices))

    return routes


def _call(pipeline: Pipeline, params: dict[str, Any], prompt: Prompt, record: RequestRecord) -> GenerationCall:
    if prompt.token_ids is not None:
        return new_call(pipeline, params, record, input_ids=prompt.token_ids)
    return new_call(pipeline, {**params, "prompt": prompt.text}, record)
