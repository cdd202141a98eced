# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks as chat completions: `ChatEvents` streams `chat.completion.chunk`s, `ChatBody` gathers a `chat.completion`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import orjson

from tritone.gateway.answers import DONE_EVENT, Identity, Usage, event, token_logprobs
from tritone.gateway.tool_calls import CallArguments, CallStart, TextPiece, ToolEvent, ToolParser
from tritone.gateway.transport import Chunk

ParserFactory = Callable[[], ToolParser]


class ChatEvents:
    """The streamed form."""

    def __init__(
        self, identity: Identity, *, num_choices: int, wants_usage: bool, new_parser: ParserFactory | None = None
    ) -> None:
        self._identity = identity
        self._wants_usage = wants_usage
        self._choices = [
            _ChoiceEvents(identity, index, wants_usage, new_parser() if new_parser else None)
            for index in range(num_choices)
        ]

    def opening(self) -> bytes:
        return b"".join(choice.opening() for choice in self._choices)

    def add(self, position: int, chunk: Chunk) -> bytes:
        return self._choices[chunk.choice_index].add(chunk)

    def closing(self, usage: Usage) -> bytes:
        if not self._wants_usage:
            return DONE_EVENT
        body = {**self._identity.head("chat.completion.chunk"), "choices": [], "usage": usage.json()}
        return event(body) + DONE_EVENT


class _ChoiceEvents:
    """The events of one choice."""

    def __init__(self, identity: Identity, index: int, wants_usage: bool, parser: ToolParser | None) -> None:
        head = orjson.dumps(identity.head("chat.completion.chunk"))[:-1]
        self._before = b"data: " + head + b',"choices":[{"index":%d,"delta":' % index
        self._end = b"}]" + (b',"usage":null' if wants_usage else b"") + b"}\n\n"
        self._before_content = self._before + b'{"content":'
        self._after_content = b'},"logprobs":null,"finish_reason":null' + self._end
        self._parser = parser
        self._has_called = False

    def opening(self) -> bytes:
        return self._delta({"role": "assistant", "content": "", "refusal": None})

    def add(self, chunk: Chunk) -> bytes:
        if self._parser is not None:
            return self._add_parsed(chunk, self._parser)
        if chunk.details:
            events = self._with_logprobs(chunk)
        elif chunk.text:
            events = self._before_content + orjson.dumps(chunk.text) + self._after_content
        else:
            events = b""
        return events + self._finish(chunk.finish_reason) if chunk.finish_reason else events

    def _with_logprobs(self, chunk: Chunk) -> bytes:
        logprobs = orjson.dumps(chat_logprobs(token_logprobs(chunk)))
        delta = b"".join((self._before_content, orjson.dumps(chunk.text), b'},"logprobs":', logprobs))
        return delta + b',"finish_reason":null' + self._end

    def _add_parsed(self, chunk: Chunk, parser: ToolParser) -> bytes:
        found = parser.feed(chunk.text)
        if chunk.finish_reason:
            found += parser.finish()
        events = b"".join(self._delta(self._tool_delta(item)) for item in found)
        if chunk.details:  # log probabilities belong to tokens, not to the text or calls they end up in
            logprobs = orjson.dumps(chat_logprobs(token_logprobs(chunk)))
            events += self._before + b'{},"logprobs":' + logprobs + b',"finish_reason":null' + self._end
        if chunk.finish_reason:
            events += self._finish(_finish_reason(chunk.finish_reason, has_called=self._has_called))
        return events

    def _tool_delta(self, item: ToolEvent) -> dict[str, Any]:
        if isinstance(item, TextPiece):
            return {"content": item.text}
        if isinstance(item, CallArguments):
            return {"tool_calls": [{"index": item.call_index, "function": {"arguments": item.text}}]}
        self._has_called = True
        return {"tool_calls": [{"index": item.call_index, **new_call(item.name)}]}

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return self._before + orjson.dumps(delta) + b',"logprobs":null,"finish_reason":null' + self._end

    def _finish(self, reason: str) -> bytes:
        return self._before + b'{},"logprobs":null,"finish_reason":' + orjson.dumps(reason) + self._end


class ChatBody:
    """The form in one body. Call `position` answers the choices from `position * num_choices` on."""

    def __init__(
        self, identity: Identity, *, num_calls: int, num_choices: int, new_parser: ParserFactory | None = None
    ) -> None:
        self._identity = identity
        self._num_choices = num_choices
        self._choices = [_Choice(new_parser() if new_parser else None) for _ in range(num_calls * num_choices)]

    def add(self, position: int, chunk: Chunk) -> None:
        self._choices[position * self._num_choices + chunk.choice_index].add(chunk)

    def body(self, usage: Usage) -> bytes:
        return orjson.dumps(
            {
                **self._identity.head("chat.completion"),
                "choices": [choice.json(index) for index, choice in enumerate(self._choices)],
                "usage": usage.json(),
            }
        )


class _Choice:
    """One choice while it is gathered."""

    def __init__(self, parser: ToolParser | None) -> None:
        self._parser = parser
        self._text: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []
        self._has_logprobs = False
        self._finish_reason = "stop"

    def add(self, chunk: Chunk) -> None:
        if chunk.details:
            self._has_logprobs = True
            self._logprobs += token_logprobs(chunk)
        if chunk.finish_reason:
            self._finish_reason = chunk.finish_reason
        if self._parser is None:
            self._text.append(chunk.text)
            return
        found = self._parser.feed(chunk.text)
        if chunk.finish_reason:
            found += self._parser.finish()
        for item in found:
            self._add_event(item)

    def json(self, index: int) -> dict[str, Any]:
        text = "".join(self._text)
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if self._calls:
            message["content"] = text or None
            message["tool_calls"] = self._calls
        return {
            "index": index,
            "message": message,
            "logprobs": chat_logprobs(self._logprobs) if self._has_logprobs else None,
            "finish_reason": _finish_reason(self._finish_reason, has_called=bool(self._calls)),
        }

    def _add_event(self, item: ToolEvent) -> None:
        if isinstance(item, TextPiece):
            self._text.append(item.text)
        elif isinstance(item, CallStart):
            self._calls.append(new_call(item.name))
        else:
            self._calls[item.call_index]["function"]["arguments"] += item.text


def new_call(name: str) -> dict[str, Any]:
    """A tool call without arguments yet."""
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": {"name": name, "arguments": ""}}


def chat_logprobs(tokens: list[dict[str, Any]]) -> dict[str, Any]:
    """Log probabilities in chat's format."""
    return {
        "content": [
            {**_logprob(token), "top_logprobs": [_logprob(other) for other in token.get("top", ())]} for token in tokens
        ],
        "refusal": None,
    }


def _logprob(token: dict[str, Any]) -> dict[str, Any]:
    return {"token": token["token"], "logprob": token["logprob"], "bytes": token.get("bytes")}


def _finish_reason(reason: str, *, has_called: bool) -> str:
    return "tool_calls" if has_called and reason == "stop" else reason
