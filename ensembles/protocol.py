# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The wire as the rooms above the stages see it: tensor names, chunk kinds, parameter keys, heartbeats.

Defined in `backends.core`, because a stage may not import this room; this is the name under which the gateway and the
orchestrators read it.
"""

from tritone.backends.core.heartbeat import READ_INTERVAL_S, HeartbeatJudge, StageProcess, read_beats
from tritone.backends.core.protocol import (
    ACCEPT_KEY,
    CANCEL_KEY,
    CAPABILITIES_PARAMETER,
    CHOICE_INDEX,
    CHUNK_INDEX,
    CHUNK_KIND,
    DETAILS,
    FINISH_REASON,
    INPUT_IDS,
    LOG_ID_KEY,
    PARAMS,
    ROLE_PARAMETER,
    SETTINGS_PARAMETER,
    TEXT,
    THINKER_INPUTS,
    THINKER_OUTPUTS,
    TOKEN_IDS,
    ChunkKind,
    FinishReason,
    TensorSpec,
)

__all__ = [
    "ACCEPT_KEY",
    "CANCEL_KEY",
    "CAPABILITIES_PARAMETER",
    "CHOICE_INDEX",
    "CHUNK_INDEX",
    "CHUNK_KIND",
    "DETAILS",
    "FINISH_REASON",
    "INPUT_IDS",
    "LOG_ID_KEY",
    "PARAMS",
    "READ_INTERVAL_S",
    "ROLE_PARAMETER",
    "SETTINGS_PARAMETER",
    "TEXT",
    "THINKER_INPUTS",
    "THINKER_OUTPUTS",
    "TOKEN_IDS",
    "ChunkKind",
    "FinishReason",
    "HeartbeatJudge",
    "StageProcess",
    "TensorSpec",
    "read_beats",
]
