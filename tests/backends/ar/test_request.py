# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checking of `params`: what is wrong is named, and nothing but our error ever comes out."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritone.backends.ar.prompt import render_prompt, tool_format
from tritone.backends.ar.request import KNOWN_KEYS, SamplingParams, parse_request
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.models.checkpoint import Checkpoint
from tritone.errors import InvalidRequest, TritoneError, Unsupported

HUGE = 10**400
NAN, INFINITY = float("nan"), float("inf")
USER = [{"role": "user", "content": "hi"}]

NO_NUMBER: list[Any] = ["1", True, NAN, INFINITY, -INFINITY, HUGE, -HUGE, [], {}, -3, 3]
NO_INTEGER: list[Any] = ["1", True, 1.5, NAN, INFINITY, HUGE, -HUGE, [], {}]
NO_FLAG: list[Any] = [0, 1, "true", []]
NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty")
INTEGERS = ("n", "max_tokens", "min_tokens", "top_k", "top_logprobs", "seed")
FLAGS = ("logprobs", "ignore_eos", "accept", "include_stop_str_in_output")

BAD: list[tuple[str, Any]] = [
    *product(NUMBERS, NO_NUMBER),
    *product(INTEGERS, NO_INTEGER),
    *product(FLAGS, NO_FLAG),
    ("n", 0), ("n", 17), ("max_tokens", 0), ("min_tokens", -1), ("top_k", -2), ("top_p", 0), ("min_p", 1),
    ("repetition_penalty", 0), ("frequency_penalty", 2.1), ("seed", 1 << 63), ("top_logprobs", 21),
    ("stop", [""]), ("stop", ["a"] * 17), ("stop", [1]), ("stop", 5), ("stop", ["\ud800"]), ("stop", ["x" * 2000]),
    ("stop_token_ids", [-1]), ("stop_token_ids", [True]), ("stop_token_ids", 3), ("stop_token_ids", [HUGE]),
    ("logit_bias", []), ("logit_bias", {"x": 1}), ("logit_bias", {"1": 101}), ("logit_bias", {"1": NAN}),
    ("logit_bias", {"-1": 1}), ("logit_bias", {"1": True}), ("logit_bias", {"9" * 5000: 1}),
    ("response_format", "json"), ("response_format", {}), ("response_format", {"type": "xml"}),
    ("response_format", {"type": "json_schema"}), ("response_format", {"type": "json_schema", "json_schema": {}}),
    ("tools", {}), ("tools", [{}]), ("tools", [{"type": "function", "function": {}}]),
    ("chat_template_kwargs", []), ("chat_template_kwargs", {"messages": []}),
    ("log_id", 5), ("log_id", "x" * 600),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), BAD)
def test_a_bad_field_is_named(key: str, value: Any) -> None:
    params = {"messages": USER, "logprobs": True, key: value}
    with pytest.raises(InvalidRequest) as caught:
        parse_request(params)
    assert caught.value.field == key
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    "messages",
    [
        [], "hi", {}, [1], [{}], [{"role": "king", "content": "x"}], [{"role": "user"}], [{"role": [], "content": ""}],
        [{"role": "user", "content": 5}], [{"role": "user", "content": [{"type": "image_url"}]}],
        [{"role": "user", "content": [{"type": "text"}]}], [{"role": "user", "content": "\udfff"}],
        [{"role": "assistant", "content": None}], [{"role": "assistant", "tool_calls": [1]}],
    ],
)  # fmt: skip
def test_bad_messages_are_named(messages: Any) -> None:
    with pytest.raises((InvalidRequest, Unsupported)) as caught:
        parse_request({"messages": messages})
    assert caught.value.field == "messages"


def test_one_prompt_exactly() -> None:
    for params, ids in (({}, False), ({"messages": USER, "prompt": "x"}, False), ({"prompt": "x"}, True)):
        with pytest.raises(InvalidRequest):
            parse_request(params, has_input_ids=ids)
    assert parse_request({}, has_input_ids=True).prompt is None
    with pytest.raises(InvalidRequest) as caught:
        parse_request({"prompt": "x", "best_of": 3})
    assert caught.value.field == "best_of"


def test_null_means_default() -> None:
    parsed = parse_request({key: None for key in KNOWN_KEYS} | {"prompt": "x"})
    assert parsed.sampling == SamplingParams()
    assert parsed.n == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(KNOWN_KEYS)) | st.text(max_size=5), json_values, max_size=6))
def test_any_json_is_parsed_or_refused(params: dict[str, Any]) -> None:
    try:
        parsed = parse_request(params)
    except TritoneError as error:
        assert error.field is not None
    else:
        assert parsed.messages is not None or parsed.prompt is not None


@given(json_values)
def test_params_of_any_type(params: Any) -> None:
    try:
        parse_request(params)
    except TritoneError as error:
        assert error.field is not None


@pytest.mark.parametrize(("asked", "used"), [(1e-46, 0.0), (9e-5, 0.0), (1e-4, 1e-4), (0.7, 0.7)])
def test_a_temperature_too_small_to_divide_by_is_greedy(asked: float, used: float) -> None:
    assert parse_request({"prompt": "x", "temperature": asked}).sampling.temperature == used


def test_rendering(tiny_llama: Path) -> None:
    tokenizer = Checkpoint.resolve(str(tiny_llama)).tokenizer
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    tool = {"type": "function", "function": {"name": "look_up"}}
    request = {"messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": parts}], "tools": [tool]}
    assert tokenizer.decode(render_prompt(tokenizer, parse_request(request), 512)) == (
        "<tools>look_up </tools><tool_call>[system]s[user]ab[assistant]"
    )
    assert tool_format(tokenizer) == "hermes"
    without = request | {"chat_template_kwargs": {"add_generation_prompt": False}}
    assert tokenizer.decode(render_prompt(tokenizer, parse_request(without), 512)).endswith("[user]ab")


def test_rendering_equals_transformers(smollm2: Checkpoint) -> None:
    tokenizer = smollm2.tokenizer
    expected = tokenizer.apply_chat_template(USER, add_generation_prompt=True, return_dict=False)
    assert render_prompt(tokenizer, parse_request({"messages": USER}), 512) == list(expected)
    with pytest.raises(Unsupported) as caught:
        render_prompt(
            tokenizer,
            parse_request({"messages": USER, "tools": [{"type": "function", "function": {"name": "f"}}]}),
            512,
        )
    assert caught.value.field == "tools"


@pytest.mark.parametrize(
    "values",
    [
        {"device": "tpu"}, {"dtype": "int8"}, {"block_tokens": 12}, {"num_blocks": 0}, {"max_rows": True},
        {"num_blocks": 5, "kv_cache_bytes": 5}, {"max_rows": 8, "max_step_tokens": 4}, {"prefix_caching": 1},
        {"context_tokens": 1}, {"num_threads": "2"}, {"colour": "blue"},
    ],
)  # fmt: skip
def test_bad_settings_are_named(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        EngineSettings.from_mapping(values)
    assert caught.value.field in values
    assert json.loads(json.dumps(values))
