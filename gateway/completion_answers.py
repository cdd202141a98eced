# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks as text completions: `CompletionEvents` streams them, `CompletionBody` gathers one body."""

from __future__ import annotations

from typing import Any

import orjson

from tritone.gateway.answers import DONE_EVENT, Identity, Usage, event, token_logprobs
from tritone.gateway.transport import Chunk

_OBJECT = "text_completion"


class CompletionEvents:
    """The streamed form. Choice `position * num_choices + choice_index` answers a call's choice."""

    def __init__(self, identity: Identity, *, num_calls: int, num_choices: int, wants_usage: bool) -> None:
        self._identity = identity
        self._num_choices = num_choices
        self._wants_usage = wants_usage
        head = orjson.dumps(identity.head(_OBJECT))[:-1] + b',"choices":[{"text":'
        self._before = b"data: " + head
        self._end = b"}]" + (b',"usage":null' if wants_usage else b"") + b"}\n\n"
        self._offsets = [0] * (num_calls * num_choices)

    def opening(self) -> bytes:
        return b""

    def add(self, position: int, chunk: Chunk) -> bytes:
        if not (chunk.text or chunk.finish_reason or chunk.details):
            return b""
        index = position * self._num_choices + chunk.choice_index
        logprobs = b"null"
        if chunk.details:
            table = completion_logprobs(token_logprobs(chunk), self._offsets[index])
            self._offsets[index] += sum(map(len, table["tokens"]))
            logprobs = orjson.dumps(table)
        reason = orjson.dumps(chunk.finish_reason)
        middle = b',"index":%d,"logprobs":%b,"finish_reason":%b' % (index, logprobs, reason)
        return self._before + orjson.dumps(chunk.text) + middle + self._end

    def closing(self, usage: Usage) -> bytes:
        if not self._wants_usage:
            return DONE_EVENT
        return event({**self._identity.head(_OBJECT), "choices": [], "usage": usage.json()}) + DONE_EVENT


class CompletionBody:
    """The form in one body."""

    def __init__(self, identity: Identity, *, num_calls: int, num_choices: int) -> None:
        self._identity = identity
        self._num_choices = num_choices
        self._text: list[list[str]] = [[] for _ in range(num_calls * num_choices)]
        self._reasons = ["stop"] * (num_calls * num_choices)
        self._logprobs: list[list[dict[str, Any]] | None] = [None] * (num_calls * num_choices)

    def add(self, position: int, chunk: Chunk) -> None:
        index = position * self._num_choices + chunk.choice_index
        self._text[index].append(chunk.text)
        if chunk.finish_reason:
            self._reasons[index] = chunk.finish_reason
        if chunk.details:
            self._logprobs[index] = (self._logprobs[index] or []) + token_logprobs(chunk)

    def body(self, usage: Usage) -> bytes:
        choices = []
        for index, pieces in enumerate(self._text):
            tokens = self._logprobs[index]
            choices.append(
                {
                    "text": "".join(pieces),
                    "index": index,
                    "logprobs": None if tokens is None else completion_logprobs(tokens, 0),
                    "finish_reason": self._reasons[index],
                }
            )
        return orjson.dumps({**self._identity.head(_OBJECT), "choices": choices, "usage": usage.json()})


def completion_logprobs(tokens: list[dict[str, Any]], offset: int) -> dict[str, Any]:
    """Log probabilities in the completions format; `offset` is the number of characters before these tokens."""
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token["token"])
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [{other["token"]: other["logprob"] for other in token.get("top", ())} for token in tokens],
        "text_offset": offsets,
    }
