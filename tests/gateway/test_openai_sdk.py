# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The unmodified OpenAI Python SDK against a gateway on a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator

import openai
import pytest
from doubles.fake_transport import FakeTransport, reply_hello, text_script
from doubles.live_gateway import live_gateway, until
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from tritone.errors import Internal, Overloaded
from tritone.gateway.settings import GatewaySettings

KEY = "sdk-test-key"
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
TOOLS: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeTransport, str]]:
    transport = FakeTransport()
    with live_gateway(transport, GatewaySettings(api_keys=(KEY,), drain_timeout_s=1)) as gateway:
        yield transport, f"{gateway.url}/v1"


@pytest.fixture
def transport(served: tuple[FakeTransport, str]) -> FakeTransport:
    served[0].script_for = reply_hello
    return served[0]


@pytest.fixture
def sdk(served: tuple[FakeTransport, str]) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served[1], api_key=KEY, max_retries=0) as client:
        yield client


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("logprobs", [False, True])
def test_chat(transport: FakeTransport, sdk: openai.OpenAI, n: int, logprobs: bool) -> None:
    answer = sdk.chat.completions.create(
        model="fake", messages=MESSAGES, n=n, logprobs=logprobs, stop=["x"], seed=1, max_completion_tokens=5
    )
    assert [choice.message.content for choice in answer.choices] == ["Hello, world"] * n
    assert answer.usage and answer.usage.completion_tokens == 3 * n
    has_logprobs = [bool(choice.logprobs and choice.logprobs.content) for choice in answer.choices]
    assert has_logprobs == [logprobs] * n


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("usage", [False, True])
def test_chat_stream(transport: FakeTransport, sdk: openai.OpenAI, n: int, usage: bool) -> None:
    options: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": usage}
    with sdk.chat.completions.create(
        model="fake", messages=MESSAGES, n=n, stream=True, stream_options=options
    ) as stream:
        chunks = list(stream)
    texts = [""] * n
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == ["Hello, world"] * n
    assert bool(chunks[-1].usage) is usage


def test_chat_stream_helper(transport: FakeTransport, sdk: openai.OpenAI) -> None:
    """The SDK's own accumulator accepts the stream."""
    with sdk.chat.completions.stream(model="fake", messages=MESSAGES) as stream:
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == "Hello, world"
    assert completion.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_tools(transport: FakeTransport, sdk: openai.OpenAI, is_streamed: bool) -> None:
    text = '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'
    transport.script_for = lambda call: text_script(list(text))
    if is_streamed:
        with sdk.chat.completions.stream(model="fake", messages=MESSAGES, tools=TOOLS) as stream:
            choice = stream.get_final_completion().choices[0]
        calls = choice.message.tool_calls
        reason = choice.finish_reason
    else:
        plain = sdk.chat.completions.create(model="fake", messages=MESSAGES, tools=TOOLS).choices[0]
        calls, reason = plain.message.tool_calls, plain.finish_reason  # type: ignore[assignment]
    assert reason == "tool_calls"
    assert calls and calls[0].type == "function"
    assert json.loads(calls[0].function.arguments) == {"city": "Paris"}


def test_completions(transport: FakeTransport, sdk: openai.OpenAI) -> None:
    answer = sdk.completions.create(model="fake", prompt=["a", "b"], logprobs=1, extra_body={"top_k": 3})
    assert [choice.text for choice in answer.choices] == ["Hello, world"] * 2
    assert answer.choices[0].logprobs and answer.choices[0].logprobs.tokens == ["Hello", ",", " world"]
    assert transport.params()["top_k"] == 3
    with sdk.completions.create(model="fake", prompt=[1, 2], stream=True) as stream:
        assert "".join(chunk.choices[0].text for chunk in stream) == "Hello, world"


def test_models(transport: FakeTransport, sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["fake"]
    assert sdk.models.retrieve("fake").owned_by == "tritone"
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.models.retrieve("zz")
    assert caught.value.code == "model_not_found"


def test_errors(transport: FakeTransport, sdk: openai.OpenAI, served: tuple[FakeTransport, str]) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        sdk.chat.completions.create(model="fake", messages=MESSAGES, temperature=5)
    assert bad.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.create(model="zz", messages=MESSAGES)
    with openai.OpenAI(base_url=served[1], api_key="wrong-key", max_retries=0) as other:
        with pytest.raises(openai.AuthenticationError):
            other.models.list()
    transport.script_for = lambda call: [Internal("broken")]
    with pytest.raises(openai.InternalServerError):
        sdk.chat.completions.create(model="fake", messages=MESSAGES, stream=True)


def test_an_error_within_a_stream_is_raised(transport: FakeTransport, sdk: openai.OpenAI) -> None:
    transport.script_for = lambda call: [*text_script(["a", "b"], accept=True)[:2], Internal("broken")]
    with sdk.chat.completions.create(model="fake", messages=MESSAGES, stream=True) as stream:
        with pytest.raises(openai.APIError, match="broken"):
            list(stream)


def test_the_sdk_retries_when_the_server_is_full(transport: FakeTransport, served: tuple[FakeTransport, str]) -> None:
    num_calls = len(transport.calls)
    transport.script_for = lambda call: (
        [Overloaded("full", retry_after_s=1.0)] if len(transport.calls) == num_calls + 1 else reply_hello(call)
    )
    with openai.OpenAI(base_url=served[1], api_key=KEY, max_retries=1) as client:
        answer = client.chat.completions.create(model="fake", messages=MESSAGES)
    assert answer.choices[0].message.content == "Hello, world"
    assert len(transport.calls) == num_calls + 2


def test_leaving_a_stream_cancels_it(transport: FakeTransport, sdk: openai.OpenAI) -> None:
    transport.script_for = lambda call: text_script(["a"] * 1000, accept=True, pause_s=0.01)
    transport.streams.clear()
    with sdk.chat.completions.create(model="fake", messages=MESSAGES, stream=True) as stream:
        next(iter(stream))
    until(lambda: transport.streams[0].is_cancelled_early, within_s=1)
