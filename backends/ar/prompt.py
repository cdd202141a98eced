# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Turns a checked request into prompt token ids with the checkpoint's tokenizer and chat template."""

from __future__ import annotations

import logging
from typing import Any

from tritone.backends.ar.request import ParsedRequest
from tritone.errors import InvalidRequest, Unsupported

logger = logging.getLogger(__name__)

# Text for each token of the context that is tokenised before anybody asks whether the prompt fits. Few languages need
# more, and a context of 8,192 takes a third of a second; 10 MB took 43 s while every other request waited.
PIECE_CHARS = 8
# A cut can change the tokens next to it.
CUT_TOKENS = 64


def render_prompt(tokenizer: Any, request: ParsedRequest, context_tokens: int) -> list[int]:
    """Prompt token ids of `request`, which has messages or a prompt text. `tokenizer` is a transformers one.

    Raises `InvalidRequest` for a prompt that is certainly longer than `context_tokens`, without reading all of it.
    """
    if request.messages is None:
        if request.prompt is None:
            raise InvalidRequest("messages or prompt must be given", field="messages")
        _refuse_too_long(tokenizer, request.prompt, context_tokens, "prompt")
        return list(tokenizer.encode(request.prompt, add_special_tokens=request.add_special_tokens))
    template = tokenizer.chat_template
    if not template:
        raise Unsupported("this checkpoint has no chat template; send prompt instead of messages", field="messages")
    if request.tools and tool_format(tokenizer) is None:
        raise Unsupported("this model's chat template takes no tools", field="tools")
    try:
        text = tokenizer.apply_chat_template(
            [dict(message) for message in request.messages],
            tools=[dict(tool) for tool in request.tools] or None,
            tokenize=False,
            **{"add_generation_prompt": True, **request.chat_template_kwargs},
        )
    except Exception:
        # Templates raise whatever they like; the client learns which field, the log the cause.
        logger.info("chat template refused a request", exc_info=True)
        raise InvalidRequest("the model's chat template does not accept these messages", field="messages") from None
    _refuse_too_long(tokenizer, text, context_tokens, "messages")
    # The template writes the special tokens itself.
    return list(tokenizer.encode(text, add_special_tokens=False))


def _refuse_too_long(tokenizer: Any, text: str, context_tokens: int, field: str) -> None:
    """Tokenise growing beginnings of a long text until one is too long already."""
    size = PIECE_CHARS * context_tokens
    while size < len(text):
        if len(tokenizer.encode(text[:size], add_special_tokens=False)) > context_tokens + CUT_TOKENS:
            raise InvalidRequest(f"the prompt is longer than the context of {context_tokens} tokens", field=field)
        size *= 2


def tool_format(tokenizer: Any) -> str | None:
    """How the model writes tool calls: "hermes" (`<tool_call>{json}</tool_call>`), or None where it cannot."""
    template = tokenizer.chat_template
    if isinstance(template, str) and "tools" in template and "<tool_call>" in template:
        return "hermes"
    return None
