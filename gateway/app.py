# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Puts the gateway together. Layers from the outside: access, CORS, keys, limits, routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from tritone.errors import InvalidRequest, TritoneError
from tritone.gateway import openapi
from tritone.gateway.admission import Admission
from tritone.gateway.catalog import Catalog
from tritone.gateway.http_errors import HttpFault, reply
from tritone.gateway.metrics import GatewayMetrics
from tritone.gateway.middleware.access import AccessLayer
from tritone.gateway.middleware.auth import AuthLayer
from tritone.gateway.middleware.limits import LimitsLayer
from tritone.gateway.record import record_of
from tritone.gateway.routes import chat, chat_batch, completions, health, models
from tritone.gateway.services import Services
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.transport import Transport
from tritone.gateway.triton_transport import TritonTransport

_HTTP_CODES = {404: "route_not_found", 405: "method_not_allowed"}


def create_app(settings: GatewaySettings, transport: Transport | None = None) -> ASGIApp:
    """The gateway as an ASGI application. `transport` is Triton's at the configured address unless one is given."""
    transport = transport or TritonTransport(settings.triton_grpc, num_channels=settings.triton_channels)
    services = Services(
        settings=settings,
        transport=transport,
        catalog=Catalog(transport),
        admission=Admission(max_inflight=settings.max_inflight, max_inflight_per_key=settings.max_inflight_per_key),
        metrics=GatewayMetrics(),
    )
    app: ASGIApp = _routes(services)
    app = LimitsLayer(app, max_header_bytes=settings.max_header_bytes, max_body_bytes=settings.max_body_bytes)
    app = AuthLayer(app, settings.api_keys, health.OPEN_PATHS)
    if settings.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("authorization", "content-type", "x-request-id", "traceparent"),
            expose_headers=("x-request-id", "retry-after"),
        )
    return AccessLayer(app, services.metrics)


def _routes(services: Services) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await services.transport.close()

    app = FastAPI(
        title="Tritone",
        version="0.1.0",
        description="OpenAI-compatible gateway to pipelines on NVIDIA Triton Inference Server.",
        lifespan=lifespan,
        redirect_slashes=False,  # a redirect would answer paths that are not routes
        exception_handlers={
            TritoneError: _answer_error,
            HttpFault: _answer_error,
            HTTPException: _answer_http_exception,
            RequestValidationError: _answer_validation_error,
            Exception: _answer_error,
        },
    )
    for family in (chat, chat_batch, completions, models, health):
        app.include_router(family.router(services))
    document: dict[str, Any] = {}

    def describe() -> dict[str, Any]:
        if not document:
            document.update(openapi.document(app, needs_key=bool(services.settings.api_keys)))
        return document

    app.openapi = describe  # type: ignore[method-assign]
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    status, body, headers = reply(error, request_id=record_of(request.scope).request_id)
    response = Response(body, status_code=status)
    response.raw_headers.extend(headers)
    return response


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _HTTP_CODES.get(error.status_code, "http_error")
    message = {404: "There is no such route.", 405: "The route does not take this method."}.get(
        error.status_code, "The request cannot be answered."
    )
    headers = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
    return await _answer_error(request, HttpFault(error.status_code, message, code=code, headers=headers))


async def _answer_validation_error(request: Request, error: Exception) -> Response:
    return await _answer_error(request, InvalidRequest("A path or query parameter is not valid."))
