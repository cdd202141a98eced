# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a generation request is, and the one place that checks `params`.

Every rule that needs no checkpoint is checked here; what depends on it (ids in the vocabulary, context length,
grammar) is checked by `Engine.submit`. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tritone.backends.ar import request_fields as read
from tritone.backends.ar.messages import check_messages, check_tools
from tritone.errors import InvalidRequest

MAX_CHOICES = 16
MAX_TOP_LOGPROBS = 20
MAX_STOPS = 16
MAX_STOP_CHARS = 1024
MAX_STOP_IDS = 256
MAX_LOGIT_BIAS = 1024
# Below, a logit over the temperature can leave float32; the most likely token has all the weight long before.
MIN_TEMPERATURE = 1e-4
# A logit is divided by it.
MIN_REPETITION_PENALTY = 0.01
MAX_TOKENS = 1 << 31
RESPONSE_TYPES = ("text", "json_object", "json_schema")
NO_BIAS: Mapping[int, float] = MappingProxyType({})

KNOWN_KEYS = frozenset(
    "accept log_id messages prompt add_special_tokens tools chat_template_kwargs n max_tokens min_tokens temperature "
    "top_k top_p min_p repetition_penalty presence_penalty frequency_penalty logit_bias logprobs top_logprobs stop "
    "stop_token_ids ignore_eos seed response_format include_stop_str_in_output".split()
)


@dataclass(frozen=True)
class ResponseFormat:
    """Shape the text must have. `schema` is set for "json_schema" only."""

    type: str = "text"
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class SamplingParams:
    """How the tokens of one choice are drawn and when it ends."""

    max_tokens: int | None = None  # None: up to the end of the context
    min_tokens: int = 0
    temperature: float = 1.0  # 0 is greedy
    top_k: int = 0  # 0 is off
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=lambda: NO_BIAS)
    logprobs: bool = False
    top_logprobs: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    seed: int | None = None  # None: the engine draws one
    response_format: ResponseFormat = ResponseFormat()
    include_stop_str_in_output: bool = False


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt as token ids, and how to continue it `n` times."""

    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    n: int = 1


@dataclass(frozen=True)
class ParsedRequest:
    """A checked `params`. Exactly one of `messages` and `prompt` is set, or neither when ids come as a tensor."""

    messages: tuple[Mapping[str, Any], ...] | None
    prompt: str | None
    tools: tuple[Mapping[str, Any], ...]
    chat_template_kwargs: Mapping[str, Any]
    add_special_tokens: bool
    accept: bool
    log_id: str | None
    n: int
    sampling: SamplingParams

    def generation(self, prompt_token_ids: list[int] | tuple[int, ...]) -> GenerationRequest:
        """The request the engine takes, once the prompt is token ids."""
        return GenerationRequest(tuple(prompt_token_ids), self.sampling, self.n)


def parse_request(params: object, *, has_input_ids: bool = False) -> ParsedRequest:
    """Check every field of `params`; raises `InvalidRequest` that names the first wrong one.

    `has_input_ids` says that the prompt travels as a tensor beside `params`.
    """
    if not isinstance(params, dict):
        raise InvalidRequest(f"params must be a JSON object, not {read.kind(params)}", field="params")
    for key in params:
        if key not in KNOWN_KEYS:
            raise InvalidRequest(f"unknown field {str(key)[:100]!r}", field=str(key)[:100])
    messages = check_messages(params.get("messages"))
    prompt = read.text(params, "prompt", None)
    given = [name for name, is_given in _prompt_sources(messages, prompt, has_input_ids) if is_given]
    if len(given) != 1:
        expected = "exactly one of messages, prompt and the tensor input_ids must be given"
        seen = "none" if not given else " and ".join(given)
        raise InvalidRequest(f"{expected}; got {seen}", field=given[-1] if given else "messages")
    tools = check_tools(params.get("tools"))
    if tools and messages is None:
        raise InvalidRequest("tools need messages", field="tools")
    return ParsedRequest(
        messages=messages,
        prompt=prompt,
        tools=tools,
        chat_template_kwargs=_template_kwargs(params, messages is not None),
        add_special_tokens=read.flag(params, "add_special_tokens", True),
        accept=read.flag(params, "accept", False),
        log_id=read.text(params, "log_id", None, max_chars=512),
        n=read.integer(params, "n", 1, 1, MAX_CHOICES),
        sampling=_sampling(params),
    )


def _prompt_sources(
    messages: tuple[Mapping[str, Any], ...] | None, prompt: str | None, has_input_ids: bool
) -> tuple[tuple[str, bool], ...]:
    return ("messages", messages is not None), ("prompt", prompt is not None), ("input_ids", has_input_ids)


def _template_kwargs(params: dict[str, Any], has_messages: bool) -> Mapping[str, Any]:
    kwargs = params.get("chat_template_kwargs")
    if kwargs is None:
        return {}
    if not isinstance(kwargs, dict):
        raise read.wrong("chat_template_kwargs", "an object", kwargs)
    if kwargs and not has_messages:
        raise InvalidRequest("chat_template_kwargs need messages", field="chat_template_kwargs")
    reserved = {"messages", "tools", "conversation", "tokenize", "chat_template", "return_tensors", "return_dict"}
    for key in kwargs:
        if key in reserved:
            raise InvalidRequest(f"chat_template_kwargs must not set {key!r}", field="chat_template_kwargs")
    return kwargs


def _temperature(params: dict[str, Any]) -> float:
    temperature = read.number(params, "temperature", 1.0, 0.0, 2.0)
    return temperature if temperature >= MIN_TEMPERATURE else 0.0


def _sampling(params: dict[str, Any]) -> SamplingParams:
    max_tokens = read.optional_integer(params, "max_tokens", 1, MAX_TOKENS)
    min_tokens = read.integer(params, "min_tokens", 0, 0, MAX_TOKENS)
    if max_tokens is not None and min_tokens > max_tokens:
        raise InvalidRequest(f"min_tokens is {min_tokens}, above max_tokens {max_tokens}", field="min_tokens")
    logprobs = read.flag(params, "logprobs", False)
    top_logprobs = read.integer(params, "top_logprobs", 0, 0, MAX_TOP_LOGPROBS)
    if top_logprobs and not logprobs:
        raise InvalidRequest("top_logprobs needs logprobs to be true", field="top_logprobs")
    return SamplingParams(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        temperature=_temperature(params),
        top_k=max(0, read.integer(params, "top_k", 0, -1, 1 << 31)),
        top_p=read.number(params, "top_p", 1.0, 0.0, 1.0, low_open=True),
        min_p=read.number(params, "min_p", 0.0, 0.0, 1.0, high_open=True),
        repetition_penalty=read.number(params, "repetition_penalty", 1.0, MIN_REPETITION_PENALTY, 2.0),
        presence_penalty=read.number(params, "presence_penalty", 0.0, -2.0, 2.0),
        frequency_penalty=read.number(params, "frequency_penalty", 0.0, -2.0, 2.0),
        logit_bias=_logit_bias(params),
        logprobs=logprobs,
        top_logprobs=top_logprobs,
        stop=read.text_list(params, "stop", MAX_STOPS, MAX_STOP_CHARS),
        stop_token_ids=read.id_list(params, "stop_token_ids", MAX_STOP_IDS),
        ignore_eos=read.flag(params, "ignore_eos", False),
        seed=read.optional_integer(params, "seed", -(1 << 63), (1 << 63) - 1),
        response_format=_response_format(params),
        include_stop_str_in_output=read.flag(params, "include_stop_str_in_output", False),
    )


def _logit_bias(params: dict[str, Any]) -> Mapping[int, float]:
    biases = params.get("logit_bias")
    if biases is None:
        return NO_BIAS
    if not isinstance(biases, dict):
        raise read.wrong("logit_bias", "an object of token id to number", biases)
    if len(biases) > MAX_LOGIT_BIAS:
        raise InvalidRequest(f"logit_bias has {len(biases)} entries; at most {MAX_LOGIT_BIAS}", field="logit_bias")
    checked: dict[int, float] = {}
    for key, bias in biases.items():
        if not (isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= 10):
            raise InvalidRequest(f"logit_bias key {str(key)[:40]!r} is not a token id", field="logit_bias")
        checked[int(key)] = read.number({"logit_bias": bias}, "logit_bias", 0.0, -100.0, 100.0)
    return MappingProxyType(checked)


def _response_format(params: dict[str, Any]) -> ResponseFormat:
    spec = params.get("response_format")
    if spec is None:
        return ResponseFormat()
    if not isinstance(spec, dict):
        raise read.wrong("response_format", "an object", spec)
    kind = spec.get("type")
    if not isinstance(kind, str) or kind not in RESPONSE_TYPES:
        raise read.wrong("response_format", f"an object whose type is one of {', '.join(RESPONSE_TYPES)}", kind)
    if kind != "json_schema":
        return ResponseFormat(kind)
    named = spec.get("json_schema")
    schema = named.get("schema") if isinstance(named, dict) else None
    if not isinstance(schema, dict):
        raise InvalidRequest("response_format.json_schema.schema must be an object", field="response_format")
    return ResponseFormat(kind, schema)
