# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Request schema of `/v1/completions`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from tritone.gateway.schemas.generation import GenerationFields
from tritone.gateway.schemas.validation import invalid, unsupported

MAX_PROMPTS = 64
MAX_TOTAL_CHOICES = 128
MAX_PROMPT_TOKENS = 1 << 18

UNSUPPORTED_FIELDS = {"suffix": "filling in before a suffix is not available."}


class Prompt(NamedTuple):
    """One prompt: text, or token ids."""

    text: str | None = None
    token_ids: tuple[int, ...] | None = None


def _is_token_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)


def _token_prompt(value: list[int]) -> Prompt:
    if len(value) > MAX_PROMPT_TOKENS:
        raise invalid(f"has more than {MAX_PROMPT_TOKENS} token ids")
    if min(value) < 0 or max(value) >= 1 << 31:
        raise invalid("has a token id out of range")
    return Prompt(token_ids=tuple(value))


def _read_prompts(value: Any) -> tuple[Prompt, ...]:
    if isinstance(value, str):
        return (Prompt(text=value),)
    if _is_token_list(value):
        return (_token_prompt(value),)
    if isinstance(value, list) and value:
        if len(value) > MAX_PROMPTS:
            raise invalid(f"has more than {MAX_PROMPTS} prompts")
        if all(isinstance(item, str) for item in value):
            return tuple(Prompt(text=item) for item in value)
        if all(_is_token_list(item) for item in value):
            return tuple(_token_prompt(item) for item in value)
    raise invalid("must be a string, a list of strings, a list of token ids, or a list of lists of token ids")


_TOKENS_SCHEMA = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1}}
Prompts = Annotated[
    tuple[Prompt, ...],
    PlainValidator(_read_prompts),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "maxItems": MAX_PROMPTS, "items": {"type": "string"}},
                _TOKENS_SCHEMA,
                {"type": "array", "minItems": 1, "maxItems": MAX_PROMPTS, "items": _TOKENS_SCHEMA},
            ]
        }
    ),
]


class CompletionRequest(GenerationFields):
    """Body of `POST /v1/completions`."""

    prompt: Prompts
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: Literal[False] | None = None
    best_of: Annotated[int, Field(ge=1, le=20)] | None = None
    add_special_tokens: bool | None = None

    @model_validator(mode="after")
    def _check_completion(self) -> Self:
        if self.best_of is not None and self.best_of != (self.n or 1):
            raise unsupported("must equal `n`: candidates are not ranked", "best_of")
        if len(self.prompt) * (self.n or 1) > MAX_TOTAL_CHOICES:
            raise invalid(f"prompts times `n` may be at most {MAX_TOTAL_CHOICES}", "prompt")
        return self

    def params(self) -> dict[str, Any]:
        params = super().params()
        if self.logprobs is not None:
            params["logprobs"] = True
            params["top_logprobs"] = self.logprobs
        if self.add_special_tokens is not None:
            params["add_special_tokens"] = self.add_special_tokens
        return params
