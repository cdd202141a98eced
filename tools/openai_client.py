# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Talk to a gateway through the unmodified OpenAI SDK, as any user would, and print an answer as it streams."""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritone.tools.problems import LaunchError

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam


@dataclass(frozen=True)
class Answer:
    """A streamed answer. `first_token_s` counts from the request."""

    text: str
    finish_reason: str | None
    num_tokens: int
    first_token_s: float
    total_s: float


def require_sdk() -> None:
    """Raise `LaunchError` when the OpenAI SDK is not installed; call it before something slow starts."""
    if importlib.util.find_spec("openai") is None:
        raise LaunchError(
            "the OpenAI Python SDK is not installed",
            remedy=f"{sys.executable} -m pip install 'tritone[demo]'",
        )


def connect(base_url: str, api_key: str | None) -> OpenAI:
    """An OpenAI client of the API at `base_url` (with /v1)."""
    require_sdk()
    from openai import OpenAI

    # The SDK insists on a key; a gateway without keys ignores it.
    return OpenAI(base_url=base_url, api_key=api_key or "none", max_retries=0)


def first_model(client: OpenAI) -> str:
    """The name of a model that is served."""
    from openai import OpenAIError

    try:
        names = [model.id for model in client.models.list()]
    except OpenAIError as error:
        raise LaunchError(f"the server at {client.base_url} refused: {error}") from None
    if not names:
        raise LaunchError(f"the server at {client.base_url} serves no model")
    return names[0]


def ask(
    client: OpenAI,
    model: str,
    question: str,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> Answer:
    """Ask, and write the answer to standard output piece by piece. Raises `LaunchError` when the server refuses."""
    from openai import OpenAIError

    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": question}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    began_s = time.monotonic()
    first_token_s = 0.0
    pieces: list[str] = []
    finish_reason, num_tokens = None, 0
    try:
        stream = client.chat.completions.create(
            model=model,
            messages=messages,
            max_tokens=max_tokens,
            temperature=temperature,
            stream=True,
            stream_options={"include_usage": True},
        )
        for event in stream:
            if event.usage is not None:
                num_tokens = event.usage.completion_tokens
            for choice in event.choices:
                finish_reason = choice.finish_reason or finish_reason
                if choice.delta.content:
                    first_token_s = first_token_s or time.monotonic() - began_s
                    pieces.append(choice.delta.content)
                    print(choice.delta.content, end="", flush=True)
    except OpenAIError as error:
        raise LaunchError(f"the server refused: {error}") from None
    finally:
        if pieces:
            print(flush=True)
    return Answer("".join(pieces), finish_reason, num_tokens, first_token_s, time.monotonic() - began_s)
