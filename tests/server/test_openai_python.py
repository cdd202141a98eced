# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The unmodified OpenAI Python SDK against the real server: stream × n × stop × usage × logprobs × errors."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

MODEL = "smollm2_chat"
QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]


def collect(stream: Any) -> tuple[dict[int, str], dict[int, str], Any, list[Any]]:
    """Texts and finish reasons by choice, usage, and all chunks."""
    texts: dict[int, str] = {}
    reasons: dict[int, str] = {}
    usage = None
    chunks = list(stream)
    for chunk in chunks:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            if choice.finish_reason:
                assert choice.index not in reasons
                reasons[choice.index] = choice.finish_reason
    return texts, reasons, usage, chunks


def test_models_list_names_both_pipelines(client: openai.OpenAI) -> None:
    assert {model.id for model in client.models.list()} == {"smollm2_chat", "tiny_chat"}
    assert client.models.retrieve(MODEL).id == MODEL


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("stop", [None, "capital", ["zzz", " France"]])
@pytest.mark.parametrize("logprobs", [False, True])
def test_streamed_equals_whole(client: openai.OpenAI, n: int, stop: Any, logprobs: bool) -> None:
    settings: dict[str, Any] = {"model": MODEL, "messages": QUESTION, "n": n, "seed": 7, "max_tokens": 24}
    settings |= {"temperature": 0.7, "stop": stop, "logprobs": logprobs}
    if logprobs:
        settings["top_logprobs"] = 2
    whole = client.chat.completions.create(**settings)
    texts, reasons, usage, chunks = collect(
        client.chat.completions.create(**settings, stream=True, stream_options={"include_usage": True})
    )
    assert {choice.index: choice.message.content for choice in whole.choices} == texts
    assert {choice.index: choice.finish_reason for choice in whole.choices} == reasons
    assert sorted(texts) == list(range(n))
    assert whole.usage is not None and usage.completion_tokens == whole.usage.completion_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == 1
    for choice in whole.choices:
        assert choice.message.content is not None
        for text in [stop] if isinstance(stop, str) else stop or []:
            assert text not in choice.message.content
        if logprobs:
            entries = choice.logprobs.content
            assert all(len(entry.top_logprobs) == 2 and entry.logprob <= 0 for entry in entries)
            assert "".join(entry.token for entry in entries).startswith(choice.message.content)


def test_greedy_answer_is_right_and_stops(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=64)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"


def test_length_is_kept_and_named(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None and answer.usage.completion_tokens == 3


def test_completions_of_text_list_and_ids(client: openai.OpenAI) -> None:
    one = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=8, temperature=0)
    assert "Paris" in one.choices[0].text
    many = client.completions.create(
        model=MODEL, prompt=["The capital of France is", "One, two, three,"], max_tokens=8, temperature=0
    )
    assert [choice.index for choice in many.choices] == [0, 1]
    assert many.choices[0].text == one.choices[0].text
    streamed = client.completions.create(
        model=MODEL, prompt="The capital of France is", max_tokens=8, temperature=0, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in streamed if chunk.choices) == one.choices[0].text
    ids = client.completions.create(model=MODEL, prompt=[504, 3575, 282], max_tokens=2)
    assert ids.usage is not None and ids.usage.prompt_tokens == 3


def test_json_schema_is_followed(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "people": {"type": "integer", "maximum": 99}},
        "required": ["city", "people"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Name a city and a number as JSON."}],
        response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}},
        max_tokens=80,
        seed=1,
    )
    parsed = json.loads(answer.choices[0].message.content or "")
    assert set(parsed) == {"city", "people"} and isinstance(parsed["people"], int)


def test_batch_keeps_the_order(client: openai.OpenAI) -> None:
    conversations = [QUESTION, [{"role": "user", "content": "Say hello."}]]
    answer = client.post(
        "/chat/completions/batch",
        body={"model": MODEL, "messages": conversations, "max_tokens": 16, "temperature": 0},
        cast_to=object,
    )
    assert isinstance(answer, dict)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert "Paris" in answer["choices"][0]["message"]["content"]


BAD: list[tuple[str, dict[str, Any]]] = [
    ("temperature", {"temperature": 3}),
    ("top_p", {"top_p": 0}),
    ("n", {"n": 0}),
    ("n", {"n": 1000}),
    ("max_tokens", {"max_tokens": 0}),
    ("max_tokens", {"max_tokens": 100_000_000}),
    ("stop", {"stop": [""]}),
    ("logit_bias", {"logit_bias": {"999999999": 1}}),
    ("top_logprobs", {"logprobs": True, "top_logprobs": 21}),
    ("response_format", {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": 5}}}),
    ("tools", {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
    ("messages", {"messages": []}),
    ("messages", {"messages": [{"role": "wizard", "content": "x"}]}),
    ("messages", {"messages": [{"role": "user", "content": "word " * 20_000}]}),
    ("stop_token_ids", {"extra_body": {"stop_token_ids": [-1]}}),
    ("no_such_field", {"extra_body": {"no_such_field": 1}}),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("field", "settings"), BAD, ids=[f"{field}-{i}" for i, (field, _) in enumerate(BAD)])
def test_bad_input_is_a_400_that_names_the_field_and_harms_nobody(
    client: openai.OpenAI, field: str, settings: dict[str, Any], stream: bool
) -> None:
    body: dict[str, Any] = {"model": MODEL, "messages": QUESTION, "stream": stream} | settings
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**body)
    assert field in (caught.value.param or "") or field in str(caught.value.message)
    good = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=8)
    assert "Paris" in (good.choices[0].message.content or "")


def test_unknown_model_is_404(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="no-such-model", messages=QUESTION)


async def test_async_sdk_runs_many_at_once_without_mixing(base_url: str) -> None:
    import asyncio

    async with openai.AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0, timeout=120) as sdk:

        async def ask(start: int) -> str:
            # A continuation that only the right prompt gives.
            numbers = ", ".join(str(number) for number in range(start, start + 6))
            answer = await sdk.completions.create(model=MODEL, prompt=numbers + ",", max_tokens=4, temperature=0)
            return answer.choices[0].text

        starts = [1, 11, 21, 31, 41, 51, 61, 71]
        together = await asyncio.gather(*(ask(start) for start in starts))
        alone = [await ask(start) for start in starts]
    assert together == alone
    assert all(str(start + 6)[:1] in text for start, text in zip(starts, together, strict=True))
