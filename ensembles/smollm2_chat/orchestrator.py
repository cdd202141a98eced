# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The chat orchestrator: every chunk of the thinker goes to the client."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritone.backends.core import protocol
from tritone.backends.core.protocol import ChunkKind
from tritone.ensembles.relay import ClientStream, RelayModel


class ChatOrchestrator(RelayModel):
    """Same tensors in and out as the thinker; see `backends.core.protocol`."""

    def route(
        self, stream: ClientStream, params: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]
    ) -> None:
        """Call the thinker and pass on what it says."""
        wants_accepted = bool(params.get(protocol.ACCEPT_KEY))
        for chunk in stream.call(self.stages["thinker"], params, arrays):
            if chunk.kind is ChunkKind.ACCEPTED:
                if wants_accepted:
                    stream.accept()
                continue
            stream.forward(chunk, is_final=chunk.kind is ChunkKind.DONE)
