# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Which pipelines exist and what each can do, read from the model configs of the inference server.

Owns a short-lived copy of that answer: a request never waits for a refresh unless nothing usable is known yet.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from enum import StrEnum

from pydantic import BaseModel, ValidationError

from tritone.ensembles.protocol import CAPABILITIES_PARAMETER, ROLE_PARAMETER
from tritone.errors import InvalidRequest, NotFound, Overloaded, TritoneError
from tritone.gateway.http_errors import ModelNotFound
from tritone.gateway.stage_health import StageHealth
from tritone.gateway.transport import ModelState, ModelStatus, Transport

_FRESH_S = 5.0  # younger than this: used as it is
_USABLE_S = 60.0  # younger than this: used while a refresh runs
STOPPED = "STOPPED"  # shown for a model whose process is dead or stalled; the server calls it READY
_RETURN_S = 30.0  # how long a pipeline that left is said to come back: a supervisor unloads before it loads
_READY_S = 0.5  # how long a readiness answer holds, so that probes cost the server nothing

_log = logging.getLogger("tritone.gateway.catalog")


class Route(StrEnum):
    """A family of HTTP routes a pipeline can serve."""

    CHAT = "chat"
    COMPLETIONS = "completions"


class Capabilities(BaseModel):
    """What a pipeline declares of itself in its model config. Unknown keys are for other readers."""

    routes: list[str] = []
    stages: list[str] = []
    context_tokens: int | None = None
    vocab_size: int | None = None
    tool_format: str | None = None
    chat_template: bool = True
    max_n: int = 16
    owned_by: str = "tritone"
    created: int = 0
    checkpoint: str = ""


class Pipeline(BaseModel):
    """A pipeline that is loaded."""

    name: str
    capabilities: Capabilities

    @property
    def members(self) -> tuple[str, ...]:
        """Every model that serves it: the orchestrator, then its stages."""
        return (self.name, *self.capabilities.stages)

    @property
    def fingerprint(self) -> str:
        """OpenAI's `system_fingerprint`: changes when what answers changes."""
        seed = f"{self.name}\n{self.capabilities.checkpoint}\n{self.capabilities.created}"
        return "fp_" + hashlib.sha256(seed.encode()).hexdigest()[:12]


class Readiness(BaseModel):
    """Whether requests can be served, and which model is in the way."""

    is_ready: bool
    reason: str = ""
    models: dict[str, str] = {}


class Catalog:
    """The pipelines of one server."""

    def __init__(self, transport: Transport, health: StageHealth | None = None) -> None:
        self.health = health or StageHealth(transport, "")
        self._transport = transport
        self._pipelines: dict[str, Pipeline] = {}
        self._statuses: dict[str, ModelStatus] = {}
        self._left_at_s: dict[str, float] = {}  # pipelines that were there, and when they were missed
        self._read_at_s = -_USABLE_S
        self._refresh: asyncio.Task[None] | None = None
        self._readiness: Readiness | None = None
        self._readiness_at_s = 0.0

    async def pipelines(self) -> list[Pipeline]:
        """Every loaded pipeline, by name."""
        age_s = asyncio.get_running_loop().time() - self._read_at_s
        if age_s > _FRESH_S:
            refresh = self._start_refresh()
            if age_s > _USABLE_S:
                await asyncio.shield(refresh)
        return [self._pipelines[name] for name in sorted(self._pipelines)]

    async def find(self, name: str) -> Pipeline:
        """The pipeline of that name; asks the server again before it says there is none."""
        await self.pipelines()
        if name not in self._pipelines and asyncio.get_running_loop().time() - self._read_at_s > 1.0:
            await asyncio.shield(self._start_refresh())
        if name not in self._pipelines:
            if self._is_coming(name):
                raise Overloaded("The model is being loaded, try again.", retry_after_s=5.0)
            raise ModelNotFound(name)
        return self._pipelines[name]

    async def choose(self, name: str | None, route: Route) -> Pipeline:
        """The pipeline a request means. Without a name there must be exactly one that serves the route."""
        if name is not None:
            pipeline = await self.find(name)
            if route not in pipeline.capabilities.routes:
                raise ModelNotFound(name)
            return pipeline
        candidates = [pipeline for pipeline in await self.pipelines() if route in pipeline.capabilities.routes]
        if not candidates:
            raise ModelNotFound()
        if len(candidates) > 1:
            raise InvalidRequest("`model` is required: several models serve this route.", field="model")
        return candidates[0]

    def members(self, name: str) -> frozenset[str]:
        """The models that serve the pipeline of that name, as far as they are known."""
        pipeline = self._pipelines.get(name)
        return frozenset(pipeline.members) if pipeline is not None else frozenset((name,))

    async def readiness(self) -> Readiness:
        """Whether the server and every pipeline with its stages are ready."""
        now_s = asyncio.get_running_loop().time()
        if self._readiness is None or now_s - self._readiness_at_s > _READY_S:
            self._readiness = await self._check_readiness()
            self._readiness_at_s = asyncio.get_running_loop().time()
        return self._with_health(self._readiness)

    async def _check_readiness(self) -> Readiness:
        try:
            if not await self._transport.is_ready():
                return Readiness(is_ready=False, reason="the inference server is not ready")
            statuses = {status.name: status for status in await self._transport.models()}
            pipelines = await self.pipelines()
        except TritoneError:
            return Readiness(is_ready=False, reason="the inference server cannot be reached")
        shown = {name: status.state.value for name, status in statuses.items()}
        reason = _what_is_missing(statuses, pipelines)
        return Readiness(is_ready=not reason, reason=reason, models=shown)

    def _with_health(self, readiness: Readiness) -> Readiness:
        """What the server says, less the models that have stopped, of which it knows nothing."""
        down = self.health.down
        if not down:
            return readiness
        ready = ModelState.READY.value
        shown = {
            name: STOPPED if state == ready and name in down else state for name, state in readiness.models.items()
        }
        stopped = [name for pipeline in self._pipelines.values() for name in pipeline.members if name in down]
        if not readiness.is_ready or not stopped:
            return readiness.model_copy(update={"models": shown})
        return Readiness(is_ready=False, reason=f"model {stopped[0]} stopped", models=shown)

    def _start_refresh(self) -> asyncio.Task[None]:
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.create_task(self._read())
            self._refresh.add_done_callback(_note_failure)
        return self._refresh

    def _is_coming(self, name: str) -> bool:
        """Whether a model that does not serve now is being loaded, or will be for all we know."""
        left_s = asyncio.get_running_loop().time() - self._left_at_s.get(name, -_RETURN_S)
        status = self._statuses.get(name)
        is_changing = status is not None and status.state in (ModelState.LOADING, ModelState.UNLOADING)
        has_failed = status is not None and status.has_failed
        return is_changing or has_failed or left_s < _RETURN_S

    async def _read(self) -> None:
        found: dict[str, Pipeline] = {}
        statuses = await self._transport.models()
        for status in statuses:
            if status.state is ModelState.READY:
                try:
                    parameters = await self._transport.parameters(status.name)
                except NotFound:  # unloaded since the index was read
                    continue
                pipeline = _read_pipeline(status.name, parameters)
                if pipeline is not None:
                    found[status.name] = pipeline
        now_s = asyncio.get_running_loop().time()
        self._left_at_s |= dict.fromkeys(self._pipelines.keys() - found.keys(), now_s)
        self._statuses = {status.name: status for status in statuses}
        self._pipelines = found
        self._read_at_s = asyncio.get_running_loop().time()


def _note_failure(refresh: asyncio.Task[None]) -> None:
    # Also marks the exception as seen: nobody may be waiting for a background refresh.
    if not refresh.cancelled() and (error := refresh.exception()) is not None:
        level = logging.WARNING if isinstance(error, Overloaded) else logging.ERROR
        _log.log(level, "model configs could not be read", extra={"fields": {"error": str(error)}})


def _read_pipeline(name: str, parameters: dict[str, str]) -> Pipeline | None:
    if parameters.get(ROLE_PARAMETER) != "pipeline":
        return None
    try:
        capabilities = Capabilities.model_validate_json(parameters.get(CAPABILITIES_PARAMETER, "{}"))
    except ValidationError:
        _log.error("a pipeline's capabilities cannot be read", extra={"fields": {"model": name}})
        return None
    return Pipeline(name=name, capabilities=capabilities)


def _what_is_missing(statuses: dict[str, ModelStatus], pipelines: list[Pipeline]) -> str:
    for name, status in statuses.items():
        if status.state is ModelState.LOADING:
            return f"model {name} is loading"
        if status.has_failed:
            return f"model {name} failed to load"
    for pipeline in pipelines:
        for name in pipeline.members:
            status_of = statuses.get(name)
            if status_of is None or status_of.state is not ModelState.READY:
                return f"model {name} is not ready"
    return "" if pipelines else "no pipeline is loaded"
