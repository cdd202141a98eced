# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The one seam between the gateway and the inference server: what it can be asked, and what comes back.

Knows nothing of gRPC or HTTP. `triton_transport` implements it; tests implement it with a fake.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from tritone.ensembles.protocol import ChunkKind


class GenerationCall(NamedTuple):
    """One request to one model."""

    model: str
    params: bytes  # JSON object, UTF-8
    input_ids: Sequence[int] | None = None  # [T] prompt token ids, in place of a prompt in `params`
    traceparent: str | None = None  # W3C trace context, already checked


class Chunk(NamedTuple):
    """One chunk of a model's answer. See `tritone.ensembles.protocol` for the meaning of each tensor."""

    chunk_index: int
    kind: ChunkKind
    choice_index: int = 0
    finish_reason: str | None = None
    text: str = ""
    num_tokens: int = 0
    details: bytes = b""  # JSON object, or empty

    @property
    def size_bytes(self) -> int:
        """About what the chunk occupies while it waits for its reader."""
        return 256 + len(self.text) + len(self.details)


class ModelState(StrEnum):
    """State of a model in the server's repository."""

    READY = "READY"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"
    UNAVAILABLE = "UNAVAILABLE"  # unloaded, never loaded, or failed


class ModelStatus(NamedTuple):
    """One model of the server's repository."""

    name: str
    state: ModelState
    has_failed: bool = False


class ChunkStream(ABC):
    """The answer to one `GenerationCall`.

    The transport promises: chunks come in order; iteration ends after the DONE chunk, or raises exactly one
    `TritoneError`; `cancel` may be called at any time, from the event loop, any number of times, and makes a pending
    or later `__anext__` raise `Cancelled` promptly. The caller promises: one reader at a time, and `cancel` at the end.
    """

    def __aiter__(self) -> ChunkStream:
        return self

    @abstractmethod
    async def __anext__(self) -> Chunk:
        """The next chunk."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop the request on the server. Harmless once it has ended."""


class Transport(ABC):
    """A connection to an inference server. All methods raise only `TritoneError`; `Overloaded` when it is away."""

    @abstractmethod
    def open(self, call: GenerationCall) -> ChunkStream:
        """Start a request. Never blocks; faults surface from the stream."""

    @abstractmethod
    async def is_ready(self) -> bool:
        """Whether the server says it is ready. False, not an error, when it cannot be reached."""

    @abstractmethod
    async def models(self) -> list[ModelStatus]:
        """Every model of the server's repository, loaded or not."""

    @abstractmethod
    async def parameters(self, model: str) -> dict[str, str]:
        """The `parameters` of a loaded model's config."""

    @abstractmethod
    async def close(self) -> None:
        """Cancel what runs and close the connections."""
