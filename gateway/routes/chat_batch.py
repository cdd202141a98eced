# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`POST /v1/chat/completions/batch`: several conversations, one choice each, in input order."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tritone.gateway.answers import Identity
from tritone.gateway.calls import new_call, shared_params
from tritone.gateway.catalog import Route
from tritone.gateway.chat_answers import ChatBody
from tritone.gateway.generation import GenerationResponse, Plan
from tritone.gateway.openapi import generating_route
from tritone.gateway.record import RequestRecord
from tritone.gateway.schemas.chat import BATCH_UNSUPPORTED_FIELDS, ChatBatchRequest
from tritone.gateway.schemas.responses import ChatCompletion
from tritone.gateway.schemas.validation import validate
from tritone.gateway.services import Services

PATH = "/v1/chat/completions/batch"


def router(services: Services) -> APIRouter:
    """The routes of this module."""
    routes = APIRouter(tags=["chat"])

    @routes.post(PATH, **generating_route(ChatBatchRequest, ChatCompletion, is_streamed=False))
    async def create_chat_completion_batch() -> Response:
        """Answer several conversations."""
        return GenerationResponse(services, PATH, plan)

    async def plan(body: dict[str, Any], record: RequestRecord) -> Plan:
        request = validate(ChatBatchRequest, body, BATCH_UNSUPPORTED_FIELDS)
        pipeline = await services.catalog.choose(request.model, Route.CHAT)
        record.model = pipeline.name
        params = shared_params(request, pipeline, record)
        calls = [
            new_call(pipeline, {**params, "messages": [message.param() for message in conversation]}, record)
            for conversation in request.messages
        ]
        identity = Identity.mint("chatcmpl", pipeline.name, pipeline.fingerprint)
        return Plan(calls, None, ChatBody(identity, num_calls=len(calls), num_choices=1))

    return routes
