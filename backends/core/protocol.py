# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Names, types and shapes of every tensor that crosses a process boundary, and the keys of `params`.

Knows nothing of what a stage computes, and imports neither torch nor Triton.

A request is one JSON text in `params` and, where a stage takes bulk data, named tensors beside it. A response is
one *chunk*: it is numbered from 0 without gaps, says its kind, and carries only the tensors that are not empty.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class TensorSpec(NamedTuple):
    """One tensor on the wire. `dims` follow Triton's config: -1 is any length."""

    name: str
    data_type: str
    dims: tuple[int, ...]
    meaning: str
    optional: bool = False


class ChunkKind(StrEnum):
    """What a chunk is."""

    ACCEPTED = "accepted"  # the request was admitted; `details` holds its handle
    TEXT = "text"  # new text and token ids of one choice
    DONE = "done"  # every choice has ended; `details` holds usage; sent with Triton's final flag
    FAILED = "failed"  # in place of DONE, to callers that set `accept`: `details` holds the error's wire form


class FinishReason(StrEnum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"


# --- inputs -----------------------------------------------------------------------------------------------------
PARAMS = TensorSpec("params", "TYPE_STRING", (1,), "request settings, one JSON object")
INPUT_IDS = TensorSpec("input_ids", "TYPE_INT32", (-1,), "[T] prompt token ids, in place of a text prompt", True)

# --- outputs ----------------------------------------------------------------------------------------------------
CHUNK_INDEX = TensorSpec("chunk_index", "TYPE_INT32", (1,), "number of this chunk within the request, from 0")
CHUNK_KIND = TensorSpec("chunk_kind", "TYPE_STRING", (1,), "a ChunkKind")
CHOICE_INDEX = TensorSpec("choice_index", "TYPE_INT32", (1,), "which of the n choices the chunk belongs to")
FINISH_REASON = TensorSpec("finish_reason", "TYPE_STRING", (1,), "a FinishReason, on the last chunk of a choice")
TEXT = TensorSpec("text", "TYPE_STRING", (1,), "new text, UTF-8, whole characters only")
TOKEN_IDS = TensorSpec("token_ids", "TYPE_INT32", (-1,), "[T] new token ids")
DETAILS = TensorSpec("details", "TYPE_STRING", (1,), "JSON: handle, logprobs or usage, by kind")

THINKER_INPUTS = (PARAMS, INPUT_IDS)
THINKER_OUTPUTS = (CHUNK_INDEX, CHUNK_KIND, CHOICE_INDEX, FINISH_REASON, TEXT, TOKEN_IDS, DETAILS)

# --- keys of `params` that every stage understands --------------------------------------------------------------
ACCEPT_KEY = "accept"  # true: answer at once with an ACCEPTED chunk (BLS callers set it)
LINK_KEY = "link"  # orchestrators only: where the chunks go, see `link.py`
CANCEL_KEY = "cancel"  # a handle: cancel that request; the only key of such a request
LOG_ID_KEY = "log_id"  # the client's name for the request: for logs, steers nothing

# --- keys of a model config's `parameters` ----------------------------------------------------------------------
ROLE_PARAMETER = "tritone_role"  # "pipeline" or "stage"
CAPABILITIES_PARAMETER = "tritone_capabilities"  # JSON, on pipelines only
SETTINGS_PARAMETER = "tritone_settings"  # JSON: what the stage or orchestrator is built from
