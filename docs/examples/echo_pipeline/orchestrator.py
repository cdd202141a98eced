# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Becomes ensembles/echo/orchestrator.py: every chunk of the speaker goes to the client."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.protocol import ChunkKind
from tritone.ensembles.relay import ClientStream, RelayModel


class EchoOrchestrator(RelayModel):
    """Same tensors in and out as the speaker."""

    def route(self, stream: ClientStream, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Call the speaker and pass on what it says."""
        for chunk in stream.call(self.stages["speaker"], params, arrays):
            if chunk.kind is not ChunkKind.ACCEPTED:
                stream.forward(chunk, is_final=chunk.kind is ChunkKind.DONE)
            elif params.get(protocol.ACCEPT_KEY):
                stream.accept()
