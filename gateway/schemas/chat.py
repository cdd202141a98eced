# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Request schemas of `/v1/chat/completions` and `/v1/chat/completions/batch`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from tritone.gateway.schemas.generation import GenerationFields
from tritone.gateway.schemas.validation import StrictModel, invalid, unsupported

MAX_MESSAGES = 4096
MAX_TOOLS = 128
MAX_CONVERSATIONS = 64

# OpenAI's fields that would change the answer and that no pipeline here can honour.
UNSUPPORTED_FIELDS = {
    "audio": "audio output is not available on this route.",
    "functions": "use `tools`.",
    "function_call": "use `tool_choice`.",
    "prediction": "predicted outputs are not available.",
    "web_search_options": "web search is not available.",
    "reasoning_effort": "reasoning effort cannot be set.",
    "verbosity": "verbosity cannot be set.",
    "moderation": "moderation is not available.",
}
_PART_TYPES = ("image_url", "input_audio", "audio_url", "video_url", "file", "refusal")
_FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def _known_part(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") in _PART_TYPES:
        raise unsupported("this server takes text parts only", "type")
    return value


class TextPart(StrictModel):
    """A text part of a message."""

    type: Literal["text"]
    text: str


def _content_tag(value: Any) -> str:
    return "<parts>" if isinstance(value, list) else "<string>"


Content = Annotated[
    Annotated[str, Tag("<string>")]
    | Annotated[
        list[Annotated[TextPart, BeforeValidator(_known_part)]], Field(min_length=1, max_length=1024), Tag("<parts>")
    ],
    Discriminator(_content_tag),
]


class FunctionCall(StrictModel):
    """The function an assistant message called."""

    name: _FunctionName
    arguments: str


class ToolCall(StrictModel):
    """A call in an assistant message."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(StrictModel):
    """One message of a conversation."""

    role: Literal["developer", "system", "user", "assistant", "tool"]
    content: Content | None = None
    name: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=MAX_TOOLS)] | None = None
    tool_call_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    refusal: str | None = None

    @model_validator(mode="after")
    def _check_role(self) -> Self:
        if self.tool_calls is not None and self.role != "assistant":
            raise invalid("only an assistant message has it", "tool_calls")
        if (self.tool_call_id is not None) != (self.role == "tool"):
            raise invalid("goes with a tool message, and only with it", "tool_call_id")
        if self.content is None and self.tool_calls is None and self.refusal is None:
            raise invalid("is required", "content")
        return self

    def param(self) -> dict[str, Any]:
        """The message as a stage takes it. Chat templates know no developer role."""
        message = self.model_dump(exclude_none=True, exclude={"refusal"})
        message.setdefault("content", self.refusal or "")
        if self.role == "developer":
            message["role"] = "system"
        return message


Conversation = Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES)]


class Function(StrictModel):
    """A function the model may call."""

    name: _FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(StrictModel):
    """A tool the model may call."""

    type: Literal["function"]
    function: Function


class NamedFunction(StrictModel):
    """The name inside a named tool choice."""

    name: _FunctionName


class NamedTool(StrictModel):
    """A tool choice that names its tool."""

    type: Literal["function"]
    function: NamedFunction


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("<mode>")] | Annotated[NamedTool, Tag("<named>")],
    Discriminator(lambda value: "<named>" if isinstance(value, dict) else "<mode>"),
]


class ChatFields(GenerationFields):
    """What a single chat request and a batch share."""

    max_completion_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    chat_template_kwargs: Annotated[dict[str, Any], Field(max_length=64)] | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    # Accepted because they do not change what a request asks the model for.
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    store: bool | None = None
    service_tier: Annotated[str, Field(max_length=64)] | None = None
    prompt_cache_key: Annotated[str, Field(max_length=1024)] | None = None
    prompt_cache_retention: Annotated[str, Field(max_length=64)] | None = None
    safety_identifier: Annotated[str, Field(max_length=1024)] | None = None

    @model_validator(mode="after")
    def _check_chat(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise invalid("is only allowed when `logprobs` is true", "top_logprobs")
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            raise invalid("differs from `max_tokens`", "max_completion_tokens")
        return self

    def params(self) -> dict[str, Any]:
        params = super().params()
        if self.max_completion_tokens is not None:
            params["max_tokens"] = self.max_completion_tokens
        if self.logprobs:
            params["logprobs"] = True
            params["top_logprobs"] = self.top_logprobs or 0
        if self.chat_template_kwargs:
            params["chat_template_kwargs"] = self.chat_template_kwargs
        return params


class ChatRequest(ChatFields):
    """Body of `POST /v1/chat/completions`."""

    messages: Conversation
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None

    @model_validator(mode="after")
    def _check_tools(self) -> Self:
        names = [tool.function.name for tool in self.tools or ()]
        if len(set(names)) < len(names):
            raise invalid("has two functions of the same name", "tools")
        if self.tool_choice not in (None, "none") and not names:
            raise invalid("is only allowed with `tools`", "tool_choice")
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.function.name not in names:
            raise invalid("names a function that is not in `tools`", "tool_choice.function.name")
        return self


class ChatBatchRequest(ChatFields):
    """Body of `POST /v1/chat/completions/batch`: one choice per conversation."""

    messages: Annotated[list[Conversation], Field(min_length=1, max_length=MAX_CONVERSATIONS)]

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        if self.stream:
            raise unsupported("a batch cannot be streamed", "stream")
        if self.n not in (None, 1):
            raise unsupported("a batch gives one choice per conversation", "n")
        return self


BATCH_UNSUPPORTED_FIELDS = {
    **UNSUPPORTED_FIELDS,
    "tools": "a batch cannot use tools.",
    "tool_choice": "a batch cannot use tools.",
    "parallel_tool_calls": "a batch cannot use tools.",
}
