# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`/v1/chat/completions` and its batch form: what goes to the stage and what comes back."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest
from doubles.events import parse_events
from doubles.fake_transport import FakeTransport, capabilities, text_script

from tritone.errors import Internal, InvalidRequest, Overloaded
from tritone.gateway.transport import GenerationCall

PATH = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Hi"}]
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "clock"}},
]


async def post(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post(PATH, json={"messages": MESSAGES, **fields})


def deltas(events: list[dict[str, Any]], choice: int = 0) -> list[dict[str, Any]]:
    return [item["delta"] for event in events for item in event["choices"] if item["index"] == choice and item["delta"]]


def reasons(events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(c["index"], c["finish_reason"]) for event in events for c in event["choices"] if c["finish_reason"]]


async def test_one_body(client: httpx.AsyncClient) -> None:
    answer = (await post(client)).json()
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["model"] == "fake"
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello, world", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert answer["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 3,
        "total_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


async def test_stream(client: httpx.AsyncClient) -> None:
    response = await post(client, stream=True)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    events, is_done = parse_events(response.text)
    assert is_done
    assert deltas(events) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hello"},
        {"content": ","},
        {"content": " world"},
    ]
    assert reasons(events) == [(0, "stop")]
    assert events[-1]["choices"][0]["delta"] == {}
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    for key in ("id", "created", "model", "system_fingerprint"):
        assert len({event[key] for event in events}) == 1
    assert all("usage" not in event for event in events)


async def test_stream_with_usage(client: httpx.AsyncClient) -> None:
    response = await post(client, stream=True, stream_options={"include_usage": True})
    events, is_done = parse_events(response.text)
    assert is_done
    assert all(event["usage"] is None for event in events[:-1])
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["total_tokens"] == 6


async def test_several_choices(client: httpx.AsyncClient) -> None:
    body = (await post(client, n=3)).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    events, _ = parse_events((await post(client, n=3, stream=True)).text)
    for choice in range(3):
        assert "".join(delta["content"] for delta in deltas(events, choice)) == "Hello, world"
    assert sorted(reasons(events)) == [(0, "stop"), (1, "stop"), (2, "stop")]


async def test_length_is_reported(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.script_for = lambda call: text_script(["a"], finish_reason="length")
    assert (await post(client)).json()["choices"][0]["finish_reason"] == "length"


async def test_logprobs(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    body = (await post(client, logprobs=True, top_logprobs=2)).json()
    assert (transport.params()["logprobs"], transport.params()["top_logprobs"]) == (True, 2)
    content = body["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in content] == ["Hello", ",", " world"]
    assert content[0]["bytes"] == list(b"Hello")
    assert [other["token"] for other in content[0]["top_logprobs"]] == ["Hello", "other"]
    events, _ = parse_events((await post(client, logprobs=True, stream=True)).text)
    streamed = [c["logprobs"]["content"] for event in events for c in event["choices"] if c["logprobs"]]
    assert [entry for part in streamed for entry in part] == content


async def test_empty_pieces_make_no_events(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.script_for = lambda call: text_script(["", "a", "", "b", ""])
    events, _ = parse_events((await post(client, stream=True)).text)
    assert [delta["content"] for delta in deltas(events)] == ["", "a", "b"]
    assert reasons(events) == [(0, "stop")]


async def test_settings_reach_the_stage(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    passed_on = {
        "n": 2,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "min_p": 0.1,
        "presence_penalty": -1.0,
        "frequency_penalty": 1.0,
        "repetition_penalty": 1.1,
        "logit_bias": {"7": -100.0},
        "stop_token_ids": [1, 2],
        "ignore_eos": True,
        "min_tokens": 1,
        "seed": -(2**63),
        "chat_template_kwargs": {"enable_thinking": False},
        "include_stop_str_in_output": True,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    }
    response = await post(client, **passed_on, max_completion_tokens=9, stop="END", user="u", store=True)
    assert response.status_code == 200
    params = transport.params()
    assert params.pop("log_id") == response.headers["x-request-id"]
    assert params == {**passed_on, "max_tokens": 9, "stop": ["END"], "messages": MESSAGES}


async def test_only_what_was_given_reaches_the_stage(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    await post(client, temperature=None, stop=None)
    assert set(transport.params()) == {"messages", "log_id"}
    await post(client, stream=True)
    assert transport.params()["accept"] is True


async def test_messages_as_the_stage_takes_them(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "Be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}], "name": "bob"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
    ]
    assert (await post(client, messages=messages)).status_code == 200
    assert transport.params()["messages"] == [
        {"role": "system", "content": "Be brief"},
        messages[1],
        {"role": "assistant", "content": "", "tool_calls": [call]},
        messages[3],
    ]


# --- tools ----------------------------------------------------------------------------------------------------------
def says(transport: FakeTransport, text: str, *, piece_chars: int = 3) -> None:
    pieces = [text[begin : begin + piece_chars] for begin in range(0, len(text), piece_chars)]
    transport.script_for = lambda call: text_script(pieces)


async def test_tool_calls_in_one_body(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    says(transport, '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>')
    choice = (await post(client, tools=TOOLS)).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["id"].startswith("call_")
    assert call["function"] == {"name": "weather", "arguments": '{"city": "Paris"}'}
    assert transport.params()["tools"] == TOOLS


async def test_tool_calls_in_a_stream(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    says(
        transport,
        'See. <tool_call>{"name": "weather", "arguments": {"c": 1}}</tool_call>\n'
        '<tool_call>{"name": "clock", "arguments": {}}</tool_call>',
    )
    events, is_done = parse_events((await post(client, tools=TOOLS, stream=True)).text)
    assert is_done
    assert reasons(events) == [(0, "tool_calls")]
    pieces = [piece for delta in deltas(events) for piece in delta.get("tool_calls", ())]
    starts = [piece for piece in pieces if "id" in piece]
    assert [(piece["index"], piece["function"]["name"]) for piece in starts] == [(0, "weather"), (1, "clock")]
    arguments = ["".join(p["function"]["arguments"] for p in pieces if p["index"] == index) for index in (0, 1)]
    assert arguments == ['{"c": 1}', "{}"]
    assert "".join(delta.get("content") or "" for delta in deltas(events)) == "See. "


async def test_no_tools_without_choice(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    says(transport, "<tool_call>{}")
    choice = (await post(client, tools=TOOLS, tool_choice="none")).json()["choices"][0]
    assert choice["message"]["content"] == "<tool_call>{}"
    assert "tools" not in transport.params()


async def test_parallel_calls_can_be_turned_off(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    says(transport, '<tool_call>{"name": "clock"}</tool_call>' * 2)
    choice = (await post(client, tools=TOOLS, parallel_tool_calls=False)).json()["choices"][0]
    assert len(choice["message"]["tool_calls"]) == 1


async def test_a_named_tool_is_forced_by_grammar(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    says(transport, '{"city": "Oslo"}')
    choice = {"type": "function", "function": {"name": "weather"}}
    message = (await post(client, tools=TOOLS, tool_choice=choice)).json()["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Oslo"}'}
    assert transport.params()["response_format"]["json_schema"]["schema"] == TOOLS[0]["function"]["parameters"]  # type: ignore[index]


async def test_some_tool_is_forced_by_grammar(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    says(transport, '{"name": "clock", "arguments": {}}')
    message = (await post(client, tools=TOOLS, tool_choice="required")).json()["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "clock", "arguments": "{}"}
    schema = transport.params()["response_format"]["json_schema"]["schema"]
    assert [option["properties"]["name"]["const"] for option in schema["anyOf"]] == ["weather", "clock"]


async def test_tools_need_a_pipeline_that_declares_them(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.pipelines = {"fake": capabilities(tool_format=None)}
    response = await post(client, tools=TOOLS)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "tools"
    assert response.json()["error"]["code"] == "unsupported"


# --- errors ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InvalidRequest("too long", field="max_tokens"), 400, "invalid_request_error"),
        (Overloaded("full", retry_after_s=2.2), 503, "server_error"),
        (Internal("broken"), 500, "server_error"),
    ],
)
async def test_errors_before_the_first_chunk_are_a_status(
    client: httpx.AsyncClient, transport: FakeTransport, stream: bool, error: Exception, status: int, kind: str
) -> None:
    transport.script_for = lambda call: [error]  # type: ignore[list-item]
    response = await post(client, stream=stream)
    assert response.status_code == status
    assert response.json()["error"]["type"] == kind
    if isinstance(error, InvalidRequest):
        assert response.json()["error"]["param"] == "max_tokens"
    if status == 503:
        assert response.headers["retry-after"] == "3"
    if status == 500:
        assert response.headers["x-request-id"] in response.json()["error"]["message"]


async def test_an_error_within_a_stream_is_its_last_event(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.script_for = lambda call: [*text_script(["a", "b"], accept=True)[:2], Internal("broken")]
    response = await post(client, stream=True)
    assert response.status_code == 200
    events, is_done = parse_events(response.text)
    assert not is_done
    assert [delta["content"] for delta in deltas(events[:-1])] == ["", "a"]
    assert events[-1]["error"]["code"] == "internal"


async def test_a_gap_in_the_chunks_is_an_error(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    script = text_script(["a", "b"])
    transport.script_for = lambda call: [script[0], script[2]]
    assert (await post(client)).status_code == 500


async def test_a_stream_without_its_end_is_an_error(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.script_for = lambda call: text_script(["a"])[:1]
    assert (await post(client)).status_code == 500


async def test_a_choice_out_of_range_is_an_error(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.script_for = lambda call: text_script(["a"], n=2)
    assert (await post(client)).status_code == 500
    events, is_done = parse_events((await post(client, stream=True)).text)
    assert not is_done
    assert events[-1]["error"]["code"] == "internal"


async def test_the_server_is_away(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    transport.is_away = True
    response = await post(client)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")


async def test_timeout(new_client: Any, transport: FakeTransport) -> None:
    transport.script_for = lambda call: text_script(["a"], pause_s=30)
    response = await post(new_client(request_timeout_s=0.1))
    assert response.status_code == 503
    assert transport.streams[0].is_cancelled_early


# --- batch ----------------------------------------------------------------------------------------------------------
async def test_batch_keeps_the_order(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    def script(call: GenerationCall) -> Any:
        text = orjson.loads(call.params)["messages"][0]["content"]
        return text_script([text.upper()], pause_s=0.03 if text == "a" else 0.0)

    transport.script_for = script
    conversations = [[{"role": "user", "content": text}] for text in "abc"]
    body = (await client.post(f"{PATH}/batch", json={"messages": conversations})).json()
    assert [(c["index"], c["message"]["content"]) for c in body["choices"]] == [(0, "A"), (1, "B"), (2, "C")]
    assert body["usage"]["prompt_tokens"] == 9


@pytest.mark.parametrize(("field", "value"), [("stream", True), ("tools", TOOLS), ("n", 2), ("beam", 1)])
async def test_batch_refuses(client: httpx.AsyncClient, field: str, value: Any) -> None:
    response = await client.post(f"{PATH}/batch", json={"messages": [MESSAGES], field: value})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == field


async def test_batch_fails_as_a_whole_and_cancels_the_rest(client: httpx.AsyncClient, transport: FakeTransport) -> None:
    def script(call: GenerationCall) -> Any:
        is_bad = orjson.loads(call.params)["messages"][0]["content"] == "bad"
        return [Internal("broken")] if is_bad else text_script(["a"], pause_s=30)

    transport.script_for = script
    conversations = [[{"role": "user", "content": text}] for text in ("a", "bad")]
    response = await client.post(f"{PATH}/batch", json={"messages": conversations})
    assert response.status_code == 500
    assert transport.streams[0].is_cancelled_early


async def test_batch_runs_a_few_at_a_time(new_client: Any, transport: FakeTransport) -> None:
    transport.script_for = lambda call: text_script(["a"], pause_s=0.01)
    running: list[int] = []
    transport_open = transport.open

    def open_and_count(call: GenerationCall) -> Any:
        running.append(sum(not stream.has_ended for stream in transport.streams) + 1)
        return transport_open(call)

    transport.open = open_and_count  # type: ignore[method-assign]
    client = new_client(max_parallel_prompts=2)
    response = await client.post(f"{PATH}/batch", json={"messages": [MESSAGES] * 6})
    assert len(response.json()["choices"]) == 6
    assert max(running) == 2


async def test_a_batch_that_fails_starts_no_more(new_client: Any, transport: FakeTransport) -> None:
    transport.script_for = lambda call: [Internal("broken")] if len(transport.calls) == 2 else text_script(["a"] * 3)
    client = new_client(max_parallel_prompts=1)
    response = await client.post(f"{PATH}/batch", json={"messages": [MESSAGES] * 6})
    assert response.status_code == 500
    assert len(transport.calls) == 2
