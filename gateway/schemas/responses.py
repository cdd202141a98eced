# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Response bodies, for the OpenAPI document and for the small routes. Streams are written without them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class ErrorDetail(BaseModel):
    """OpenAI's error."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """Every error of every route."""

    error: ErrorDetail


class Liveness(BaseModel):
    """Answer of the probes."""

    status: str


class Health(BaseModel):
    """Answer of `/health`."""

    status: str
    reason: str
    models: dict[str, str]
    inflight: int


class ModelCard(BaseModel):
    """A model that can be asked for."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int | None
    routes: list[str]
    supports_tools: bool


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"]
    data: list[ModelCard]


class PromptDetails(BaseModel):
    """How much of the prompt came from the cache."""

    cached_tokens: int


class UsageBody(BaseModel):
    """Tokens of a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class TokenLogprob(BaseModel):
    """A token and its natural log probability."""

    token: str
    logprob: float
    bytes: list[int] | None


class ChosenTokenLogprob(TokenLogprob):
    """The token that was taken, with the likeliest ones at its place."""

    top_logprobs: list[TokenLogprob]


class ChatLogprobs(BaseModel):
    """Log probabilities of a chat choice."""

    content: list[ChosenTokenLogprob]
    refusal: None


class CalledFunction(BaseModel):
    """A function and its arguments as JSON text."""

    name: str
    arguments: str


class CalledTool(BaseModel):
    """A call the model made."""

    id: str
    type: Literal["function"]
    function: CalledFunction


class ChatMessage(BaseModel):
    """The model's message."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[CalledTool] | None = None


class ChatChoice(BaseModel):
    """One choice."""

    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"]


class ChatCompletion(BaseModel):
    """Answer of the chat routes."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: UsageBody


class CompletionLogprobs(BaseModel):
    """Log probabilities of a completion choice."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """One choice."""

    text: str
    index: int
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"]


class Completion(BaseModel):
    """Answer of the completions route."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: UsageBody
