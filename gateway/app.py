# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Puts the gateway together. Layers from the outside: access, CORS, keys, drain, limits, routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
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
from tritone.gateway.middleware.drain import DrainLayer
from tritone.gateway.middleware.limits import BodyBudget, LimitsLayer
from tritone.gateway.record import record_of
from tritone.gateway.routes import chat, chat_batch, completions, health, models
from tritone.gateway.services import Services
from tritone.gateway.settings import GatewaySettings
from tritone.gateway.stage_health import StageHealth
from tritone.gateway.transport import Transport
from tritone.gateway.triton_transport import TritonTransport

_HTTP_CODES = {404: "route_not_found", 405: "method_not_allowed"}


def create_app(settings: GatewaySettings, transport: Transport | None = None) -> AccessLayer:
    """The gateway as an ASGI application. `transport` is Triton's at the configured address unless one is given."""
    transport = transport or TritonTransport(settings.triton_grpc, num_channels=settings.triton_channels)
    services = Services(
        settings=settings,
        transport=transport,
        catalog=Catalog(transport, StageHealth(transport, settings.triton_metrics)),
        admission=Admission(
            max_running=settings.max_inflight,
            max_waiting=settings.max_waiting,
            max_wait_s=settings.max_queue_s,
            max_open_per_key=settings.max_inflight_per_key,
        ),
        metrics=GatewayMetrics(),
    )
    budget = BodyBudget(settings.max_bodies_bytes)
    services.metrics.watch(services.admission, budget)
    routers = [family.router(services) for family in (chat, chat_batch, completions, models, health)]
    app: ASGIApp = _routes(services, routers)
    app = LimitsLayer(
        app, max_header_bytes=settings.max_header_bytes, max_body_bytes=settings.max_body_bytes, budget=budget
    )
    app = DrainLayer(app, {health.LIVE_PATH, health.HEALTH_PATH, health.METRICS_PATH})
    app = AuthLayer(app, settings.api_keys, health.OPEN_PATHS)
    if settings.cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "POST"),
            # Any header: the origins are the bound, and OpenAI's SDK sends a dozen of its own.
            allow_headers=("*",),
            expose_headers=("x-request-id", "retry-after"),
        )
    paths = [route.path for router in routers for route in router.routes if isinstance(route, APIRoute)]
    return AccessLayer(app, services.metrics, paths)


def _routes(services: Services, routers: Sequence[APIRouter]) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        services.catalog.health.start()
        yield
        await services.catalog.health.stop()
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
    for router in routers:
        app.include_router(router)
    document: dict[str, Any] = {}

    def describe() -> dict[str, Any]:
        if not document:
            document.update(openapi.document(app, needs_key=bool(services.settings.api_keys)))
        return document

    app.openapi = describe  # type: ignore[method-assign]
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    record = record_of(request.scope)
    answer = reply(error, request_id=record.request_id)
    record.rejected_for = answer.code
    response = Response(answer.body, status_code=answer.status)
    response.raw_headers.extend(answer.headers)
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
