# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the calls of a request: the rules that every API family shares between its schema and the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from tritone.ensembles.protocol import ACCEPT_KEY, LOG_ID_KEY
from tritone.errors import InvalidRequest, Unsupported
from tritone.gateway.catalog import Pipeline
from tritone.gateway.record import RequestRecord
from tritone.gateway.schemas.generation import GenerationFields
from tritone.gateway.transport import GenerationCall

# Far above what any text averages; single tokens (runs of spaces) may be longer.
MAX_BYTES_PER_TOKEN = 64
MAX_OTHER_BYTES = 1 << 19  # everything in `params` but the prompt, a schema above all


def shared_params(request: GenerationFields, pipeline: Pipeline, record: RequestRecord) -> dict[str, Any]:
    """The `params` of a request apart from its prompt; refuses what this pipeline declares it cannot do."""
    if (request.n or 1) > pipeline.capabilities.max_n:
        raise Unsupported(f"`n` may be at most {pipeline.capabilities.max_n} for this model.", field="n")
    params = {**request.params(), LOG_ID_KEY: record.log_id}
    if request.stream:
        # Headers go out as soon as the request is admitted, not when its first token is there.
        params[ACCEPT_KEY] = True
    return params


def new_call(
    pipeline: Pipeline, params: dict[str, Any], record: RequestRecord, *, input_ids: Sequence[int] | None = None
) -> GenerationCall:
    """One call to a pipeline."""
    text = orjson.dumps(params)
    context_tokens = pipeline.capabilities.context_tokens
    if context_tokens is not None and len(text) > context_tokens * MAX_BYTES_PER_TOKEN + MAX_OTHER_BYTES:
        # It cannot fit, and a stage that turned it into tokens to find out would keep everybody waiting.
        field = "messages" if "messages" in params else "prompt"
        raise InvalidRequest(f"The prompt is far longer than the {context_tokens} tokens of this model.", field=field)
    vocabulary = pipeline.capabilities.vocab_size
    if input_ids is not None and vocabulary is not None and max(input_ids) >= vocabulary:
        raise InvalidRequest(f"Token ids of this model are below {vocabulary}.", field="prompt")
    if input_ids is not None and context_tokens is not None and len(input_ids) > context_tokens:
        raise InvalidRequest(f"The prompt is longer than the {context_tokens} tokens of this model.", field="prompt")
    return GenerationCall(pipeline.name, text, input_ids, record.traceparent)
