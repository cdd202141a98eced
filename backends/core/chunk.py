# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A chunk, and how it becomes the tensors of one Triton response. Knows the wire, not what a stage computes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.protocol import ChunkKind, FinishReason
from tritone.errors import TritoneError, to_wire


@dataclass(frozen=True)
class Chunk:
    """One response of a stage, without its number: a request's sender numbers chunks as it sends them.

    `text` holds whole characters only; `token_ids` are the ids behind it. `details` is JSON-able and small.
    """

    kind: ChunkKind
    choice_index: int = 0
    text: str = ""
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    details: dict[str, Any] | None = None


def failed_chunk(error: TritoneError) -> Chunk:
    """The chunk that ends a request with `error`, where no Triton error can."""
    return Chunk(ChunkKind.FAILED, details=json.loads(to_wire(error)))


def text_array(text: str) -> np.ndarray[Any, np.dtype[np.object_]]:
    """[1] object: the form in which Triton takes one string."""
    return np.array([text.encode()], dtype=np.object_)


def chunk_arrays(chunk: Chunk) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of `chunk` by tensor name; what is empty is absent."""
    arrays: dict[str, np.ndarray[Any, Any]] = {protocol.CHUNK_KIND.name: text_array(chunk.kind)}
    if chunk.kind is ChunkKind.TEXT:
        arrays[protocol.CHOICE_INDEX.name] = np.array([chunk.choice_index], dtype=np.int32)
    if chunk.text:
        arrays[protocol.TEXT.name] = text_array(chunk.text)
    if chunk.token_ids:
        arrays[protocol.TOKEN_IDS.name] = np.array(chunk.token_ids, dtype=np.int32)
    if chunk.finish_reason is not None:
        arrays[protocol.FINISH_REASON.name] = text_array(chunk.finish_reason)
    if chunk.details is not None:
        arrays[protocol.DETAILS.name] = text_array(json.dumps(chunk.details, ensure_ascii=False))
    return arrays


def can_join(first: Chunk, second: Chunk) -> bool:
    """Whether two consecutive chunks of a request may travel as one."""
    return (
        first.kind is ChunkKind.TEXT
        and second.kind is ChunkKind.TEXT
        and first.choice_index == second.choice_index
        and first.finish_reason is None
    )


def join(first: Chunk, second: Chunk) -> Chunk:
    """One chunk that says what `first` and then `second` say. Lists in `details` are appended key by key."""
    details = first.details
    if second.details is not None:
        details = dict(first.details or {})
        for key, items in second.details.items():
            details[key] = details.get(key, []) + items
    return Chunk(
        kind=ChunkKind.TEXT,
        choice_index=first.choice_index,
        text=first.text + second.text,
        token_ids=first.token_ids + second.token_ids,
        finish_reason=second.finish_reason,
        details=details,
    )
