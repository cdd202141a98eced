# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Triton's protobuf messages to and from the gateway's own values, without a copy through NumPy.

A BYTES tensor of one element is a little-endian uint32 length and the bytes; an INT32 tensor is its raw values.
Tensor names and types come from `tritone.ensembles.protocol`.
"""

from __future__ import annotations

import struct
from typing import Any

from tritonclient.grpc import service_pb2

from tritone.ensembles.protocol import (
    CHOICE_INDEX,
    CHUNK_INDEX,
    CHUNK_KIND,
    DETAILS,
    FINISH_REASON,
    INPUT_IDS,
    PARAMS,
    TEXT,
    TOKEN_IDS,
    ChunkKind,
)
from tritone.errors import NotFound, Overloaded, TritoneError, from_wire
from tritone.gateway.transport import Chunk, GenerationCall

_UINT32 = struct.Struct("<I")
_INT32 = struct.Struct("<i")
_KINDS = {kind.value.encode(): kind for kind in ChunkKind}
_FINAL = "triton_final_response"


def build_request(call: GenerationCall, *, request_id: str) -> Any:
    """The `ModelInferRequest` of a call."""
    request = service_pb2.ModelInferRequest(model_name=call.model, id=request_id)
    # Without this Triton swallows a final response that carries no tensors, and the stream would never end.
    request.parameters["triton_enable_empty_final_response"].bool_param = True
    request.inputs.add(name=PARAMS.name, datatype="BYTES", shape=[1])
    request.raw_input_contents.append(_UINT32.pack(len(call.params)) + call.params)
    if call.input_ids is not None:
        num_tokens = len(call.input_ids)
        request.inputs.add(name=INPUT_IDS.name, datatype="INT32", shape=[num_tokens])
        request.raw_input_contents.append(struct.pack(f"<{num_tokens}i", *call.input_ids))
    return request


def is_final(answer: Any) -> bool:
    """Whether a `ModelInferResponse` carries Triton's final flag."""
    parameters = answer.parameters
    return _FINAL in parameters and bool(parameters[_FINAL].bool_param)


def read_chunk(answer: Any) -> Chunk:
    """The chunk in a `ModelInferResponse`. Raises the error that a FAILED chunk carries, and ValueError when a tensor
    breaks the protocol.
    """
    raw = {tensor.name: data for tensor, data in zip(answer.outputs, answer.raw_output_contents, strict=True)}
    kind = _KINDS.get(_element(raw.get(CHUNK_KIND.name)))
    if kind is None:
        raise ValueError("unknown chunk kind")
    if kind is ChunkKind.FAILED:
        raise from_wire(_element(raw.get(DETAILS.name)).decode())
    return Chunk(
        chunk_index=_integer(raw.get(CHUNK_INDEX.name)),
        kind=kind,
        choice_index=_integer(raw.get(CHOICE_INDEX.name)),
        finish_reason=_element(raw.get(FINISH_REASON.name)).decode() or None,
        text=_element(raw.get(TEXT.name)).decode(),
        num_tokens=len(raw.get(TOKEN_IDS.name, b"")) >> 2,
        details=_element(raw.get(DETAILS.name)),
    )


def read_error(text: str) -> TritoneError:
    """The error in a stream message: a stage's own, or one of the few Triton raises before a stage sees the request."""
    if text.startswith("Request for unknown model"):
        if any(words in text for words in ("not at ready state", "is not ready", "has no available versions")):
            return Overloaded("the model is being loaded or unloaded, try again", retry_after_s=2.0)
        return NotFound("the inference server does not have this model", field="model")
    return from_wire(text)


def _element(data: bytes | None) -> bytes:
    """The first element of a BYTES tensor; empty when the tensor is absent or has no element."""
    if not data:
        return b""
    (length,) = _UINT32.unpack_from(data)
    if len(data) < 4 + length:
        raise ValueError("truncated BYTES tensor")
    return data[4 : 4 + length]


def _integer(data: bytes | None) -> int:
    if not data:
        return 0
    value: int = _INT32.unpack_from(data)[0]
    return value
