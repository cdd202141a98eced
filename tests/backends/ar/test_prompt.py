# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Messages through a chat template: OpenAI's forms reach it as the plain ones it was written for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tritone.backends.ar.prompt import render_prompt, tool_format
from tritone.backends.ar.request import parse_request
from tritone.backends.models.checkpoint import Checkpoint
from tritone.errors import InvalidRequest, Unsupported

# As Hermes and Qwen write tool calls: the template turns the arguments into JSON.
TOOL_TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }};{% endfor %}"
    "{% for message in messages %}{{ message.role }}:{{ message.content }}"
    "{% for call in message.tool_calls or [] %}"
    '<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>'
    "{% endfor %}|{% endfor %}"
)
CONTEXT = 64
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


@pytest.fixture
def tokenizer(tiny_qwen3: Path) -> Any:
    return Checkpoint.resolve(str(tiny_qwen3)).tokenizer


def rendered(tokenizer: Any, **params: Any) -> str:
    return str(tokenizer.decode(render_prompt(tokenizer, parse_request(params), CONTEXT)))


def assistant_call(arguments: object) -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"city":"Paris", "days":[1,2]}', '{"city": "Paris", "days": [1, 2]}'),
        ({"city": "Paris"}, '{"city": "Paris"}'),
        ("{}", "{}"),
        ("", "{}"),
        ("not json", '"not json"'),
    ],
)
def test_tool_call_arguments_reach_the_template_as_an_object(tokenizer: Any, arguments: object, shown: str) -> None:
    tokenizer.chat_template = TOOL_TEMPLATE
    answer = {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "sunny"}]}
    text = rendered(tokenizer, messages=[assistant_call(arguments), answer], tools=[WEATHER])
    call = f'<tool_call>{{"name": "weather", "arguments": {shown}}}</tool_call>'
    assert text == f"weather;assistant:{call}|tool:sunny|"


@pytest.mark.parametrize("field", ["prompt", "messages"])
def test_a_prompt_far_too_long_is_refused_after_its_beginning(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    read: list[int] = []
    encode = tokenizer.encode

    def counted(text: str, **how: Any) -> Any:
        read.append(len(text))
        return encode(text, **how)

    monkeypatch.setattr(tokenizer, "encode", counted)
    long = "x" * 1_000_000
    params = {"prompt": long} if field == "prompt" else {"messages": [{"role": "user", "content": long}]}
    with pytest.raises(InvalidRequest) as refused:
        render_prompt(tokenizer, parse_request(params), CONTEXT)
    assert refused.value.field == field
    assert sum(read) < 10_000


def test_long_text_of_few_tokens_is_read_whole(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "encode", lambda text, **_: [1] * (len(text) // 1000))
    assert len(render_prompt(tokenizer, parse_request({"prompt": "x" * 50_000}), CONTEXT)) == 50


def test_tools_need_a_template_that_takes_them(tokenizer: Any) -> None:
    hello = [{"role": "user", "content": "hello"}]
    tokenizer.chat_template = TOOL_TEMPLATE
    assert tool_format(tokenizer) == "hermes"
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    assert tool_format(tokenizer) is None
    with pytest.raises(Unsupported) as caught:
        rendered(tokenizer, messages=hello, tools=[WEATHER])
    assert caught.value.field == "tools"
    tokenizer.chat_template = None
    with pytest.raises(Unsupported) as caught:
        rendered(tokenizer, messages=hello)
    assert caught.value.field == "messages"


def test_a_template_that_refuses_is_a_bad_request_without_its_words(tokenizer: Any) -> None:
    tokenizer.chat_template = "{{ raise_exception('secret words') }}"
    with pytest.raises(InvalidRequest) as caught:
        rendered(tokenizer, messages=[{"role": "user", "content": "hello"}])
    assert caught.value.field == "messages" and "secret" not in str(caught.value)


def test_a_plain_prompt_meets_no_template(tokenizer: Any) -> None:
    tokenizer.chat_template = None
    assert rendered(tokenizer, prompt="just this") == "just this"
