# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Health and metrics: `/health/live`, `/health/ready`, `/health`, `/metrics`."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from tritone.gateway.openapi import error_responses
from tritone.gateway.record import record_of
from tritone.gateway.schemas.responses import Health, Liveness
from tritone.gateway.services import Services
from tritone.gateway.stage_health import fetch_metrics

LIVE_PATH = "/health/live"
READY_PATH = "/health/ready"
HEALTH_PATH = "/health"
METRICS_PATH = "/metrics"
OPEN_PATHS = frozenset((LIVE_PATH, READY_PATH))  # the only ones that ask for no key

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNREADABLE = b"# Triton's metrics could not be read\n"
_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Liveness, "description": "Not ready"}}


def router(services: Services) -> APIRouter:
    """The routes of this module."""
    routes = APIRouter(tags=["operation"])

    @routes.get(LIVE_PATH, response_model=Liveness, responses=error_responses(431))
    async def live(request: Request) -> Response:
        """Whether the gateway's process answers."""
        record_of(request.scope).route = LIVE_PATH
        return JSONResponse({"status": "ok"})

    @routes.get(READY_PATH, response_model=Liveness, responses={**error_responses(431, 500), **_NOT_READY})
    async def ready(request: Request) -> Response:
        """Whether every loaded pipeline can serve."""
        record_of(request.scope).route = READY_PATH
        is_ready = (await services.catalog.readiness()).is_ready
        return JSONResponse({"status": "ready" if is_ready else "not ready"}, status_code=200 if is_ready else 503)

    @routes.get(
        HEALTH_PATH,
        response_model=Health,
        responses={**error_responses(401, 431, 500), 503: {"model": Health, "description": "Not ready"}},
    )
    async def health(request: Request) -> Response:
        """What is ready and what is in the way."""
        record_of(request.scope).route = HEALTH_PATH
        readiness = await services.catalog.readiness()
        body = {
            "status": "ready" if readiness.is_ready else "not ready",
            "reason": readiness.reason,
            "models": readiness.models,
            "inflight": services.admission.num_inflight,
        }
        return JSONResponse(body, status_code=200 if readiness.is_ready else 503)

    @routes.get(
        METRICS_PATH,
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "Metrics"}, **error_responses(401, 431, 500)},
    )
    async def metrics(request: Request) -> Response:
        """The gateway's metrics, then Triton's."""
        record_of(request.scope).route = METRICS_PATH
        text = services.metrics.text()
        if services.settings.triton_metrics:
            page = await asyncio.to_thread(fetch_metrics, services.settings.triton_metrics)
            text += _UNREADABLE if page is None else page
        return Response(text, media_type=_METRICS_TYPE)

    return routes

