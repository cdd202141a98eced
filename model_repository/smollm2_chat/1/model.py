# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""smollm2_chat: Sends the request to the thinker and relays its chunks, in order, to the client."""

# Rendered by `tritone build`; edit the pipeline or its profile instead.

import triton_python_backend_utils as pb_utils

from tritone.ensembles.smollm2_chat.orchestrator import ChatOrchestrator


class TritonPythonModel(ChatOrchestrator):
    """Sends the request to the thinker and relays its chunks, in order, to the client.

    Inputs
      params         string [1]: request settings, one JSON object
      input_ids      int32 [*] (optional): [T] prompt token ids, in place of a text prompt
    Outputs
      chunk_index    int32 [1]: number of this chunk within the request, from 0
      chunk_kind     string [1]: a ChunkKind
      choice_index   int32 [1]: which of the n choices the chunk belongs to
      finish_reason  string [1]: a FinishReason, on the last chunk of a choice
      text           string [1]: new text, UTF-8, whole characters only
      token_ids      int32 [*]: [T] new token ids
      details        string [1]: JSON: handle, logprobs or usage, by kind
    """

    pb_utils = pb_utils
