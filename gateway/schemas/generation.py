# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Fields that chat and completions share, and how they become the `params` of a stage."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from tritone.gateway.schemas.validation import StrictModel, invalid

MAX_CHOICES = 16
MAX_STOPS = 16
_INT64 = 1 << 63

# A name, perhaps with an organisation before it; no path.
MODEL_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._:-]*(/[A-Za-z0-9_][A-Za-z0-9._:-]*)?$"
MAX_MODEL_NAME_CHARS = 128
ModelName = Annotated[str, Field(min_length=1, max_length=MAX_MODEL_NAME_CHARS, pattern=MODEL_NAME_PATTERN)]
StopText = Annotated[str, Field(min_length=1, max_length=1024)]
Stop = Annotated[
    list[StopText],
    Field(max_length=MAX_STOPS),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": 1024},
                {
                    "type": "array",
                    "maxItems": MAX_STOPS,
                    "items": {"type": "string", "minLength": 1, "maxLength": 1024},
                },
            ]
        }
    ),
]
TokenIdText = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]
TokenId = Annotated[int, Field(ge=0, lt=1 << 31)]


class StreamOptions(StrictModel):
    """OpenAI's `stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None  # padding against traffic analysis: a hint, not a promise


class JsonSchemaFormat(StrictModel):
    """The `json_schema` of a response format."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(StrictModel):
    """OpenAI's `response_format`."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise invalid("goes with type json_schema, and only with it", "json_schema")
        return self


class GenerationFields(StrictModel):
    """Sampling and delivery settings of a request. Absent fields take the stage's defaults."""

    model: ModelName | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    logit_bias: (
        Annotated[dict[TokenIdText, Annotated[float, Field(ge=-100, le=100)]], Field(max_length=1024)] | None
    ) = None
    stop: Stop | None = None
    seed: Annotated[int, Field(ge=-_INT64, lt=_INT64)] | None = None
    response_format: ResponseFormat | None = None
    # Extensions.
    top_k: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    min_p: Annotated[float, Field(ge=0, lt=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    min_tokens: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    stop_token_ids: Annotated[list[TokenId], Field(max_length=64)] | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    # Accepted because they do not change what a request asks the model for.
    user: Annotated[str, Field(max_length=1024)] | None = None

    @model_validator(mode="after")
    def _check_stream_options(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise invalid("is only allowed when `stream` is true", "stream_options")
        return self

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a usage chunk."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def params(self) -> dict[str, Any]:
        """The settings as a stage's `params`, absent ones left out."""
        return self.model_dump(include=PASSED_ON, exclude_none=True, by_alias=True)


# Fields whose name and meaning a stage shares.
PASSED_ON = {
    "n",
    "max_tokens",
    "min_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "stop",
    "stop_token_ids",
    "ignore_eos",
    "seed",
    "response_format",
    "include_stop_str_in_output",
}
