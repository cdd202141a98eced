# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`POST /v1/chat/completions`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tritone.errors import Unsupported
from tritone.gateway.answers import Identity
from tritone.gateway.calls import new_call, shared_params
from tritone.gateway.catalog import Pipeline, Route
from tritone.gateway.chat_answers import ChatBody, ChatEvents, ParserFactory
from tritone.gateway.generation import GenerationResponse, Plan
from tritone.gateway.openapi import generating_route
from tritone.gateway.record import RequestRecord
from tritone.gateway.schemas.chat import UNSUPPORTED_FIELDS, ChatRequest, NamedTool, Tool
from tritone.gateway.schemas.responses import ChatCompletion
from tritone.gateway.schemas.validation import validate
from tritone.gateway.services import Services
from tritone.gateway.tool_calls import HermesParser, NamedCallParser

PATH = "/v1/chat/completions"
_TOOL_FORMAT = "hermes"


def router(services: Services) -> APIRouter:
    """The routes of this module."""
    routes = APIRouter(tags=["chat"])

    @routes.post(PATH, **generating_route(ChatRequest, ChatCompletion, is_streamed=True))
    async def create_chat_completion() -> Response:
        """Answer a conversation."""
        return GenerationResponse(services, PATH, plan)

    async def plan(body: dict[str, Any], record: RequestRecord) -> Plan:
        request = validate(ChatRequest, body, UNSUPPORTED_FIELDS)
        pipeline = await services.catalog.choose(request.model, Route.CHAT)
        record.model = pipeline.name
        params = shared_params(request, pipeline, record)
        params["messages"] = [message.param() for message in request.messages]
        new_parser = _apply_tools(request, pipeline, params)
        calls = [new_call(pipeline, params, record)]
        identity = Identity.mint("chatcmpl", pipeline.name, pipeline.fingerprint)
        num_choices = request.n or 1
        if request.stream:
            events = ChatEvents(
                identity, num_choices=num_choices, wants_usage=request.wants_usage, new_parser=new_parser
            )
            return Plan(calls, events, None)
        return Plan(calls, None, ChatBody(identity, num_calls=1, num_choices=num_choices, new_parser=new_parser))

    return routes


def _apply_tools(request: ChatRequest, pipeline: Pipeline, params: dict[str, Any]) -> ParserFactory | None:
    """Put the tools into `params` as the tool choice says, and give the parser for what the model will write."""
    if not request.tools or request.tool_choice == "none":
        return None
    if pipeline.capabilities.tool_format != _TOOL_FORMAT:
        raise Unsupported("`tools`: this model declares no tool-call format.", field="tools")
    params["tools"] = [tool.model_dump(exclude_none=True) for tool in request.tools]
    max_calls = 1 if request.parallel_tool_calls is False else None
    if request.tool_choice in (None, "auto"):
        return lambda: HermesParser(max_calls=max_calls)
    if request.response_format is not None and request.response_format.type != "text":
        raise Unsupported("`response_format` cannot be combined with a forced tool call.", field="response_format")
    # A forced call is a matter of grammar: the stage lets the model write nothing else.
    if isinstance(request.tool_choice, NamedTool):
        name = request.tool_choice.function.name
        tool = next(tool for tool in request.tools if tool.function.name == name)
        params["response_format"] = _json_format(name, _parameters(tool))
        return lambda: NamedCallParser(name)
    calls = {"anyOf": [_call_schema(tool) for tool in request.tools]}
    params["response_format"] = _json_format("tool_call", calls)
    return lambda: HermesParser(is_inside=True, max_calls=1)


def _json_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


def _parameters(tool: Tool) -> dict[str, Any]:
    return tool.function.parameters or {"type": "object"}


def _call_schema(tool: Tool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.function.name}, "arguments": _parameters(tool)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
