# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A plain Triton gRPC client for the tests: one stream, one request, chunks as dictionaries."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tritonclient.grpc as triton

from tritone.errors import from_wire

TIMEOUT_S = 60


class TritonStream:
    """One request on one gRPC stream. Iterate for chunks; the last one has `is_final`."""

    def __init__(self, client: triton.InferenceServerClient, results: queue.Queue[tuple[Any, Any]]) -> None:
        self._client = client
        self._results = results
        self._has_ended = False

    def close(self) -> None:
        """Cancel what still runs. A stream that has ended is closed in order: the 24.10 server keeps something of a
        model for ever when a cancel meets the end of a stream, and then cannot unload it.
        """
        self._client.stop_stream(cancel_requests=not self._has_ended)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            chunk = self.next()
            if chunk is None:
                return
            yield chunk
            if chunk["is_final"]:
                return

    def next(self, timeout_s: float = TIMEOUT_S) -> dict[str, Any] | None:
        """The next chunk; none after the empty final response. Raises the stage's error, or Triton's own."""
        result, error = self._results.get(timeout=timeout_s)
        if error is not None:
            self._has_ended = True
            raise from_wire(error.message()) if '"code"' in error.message() else error
        response = result.get_response()
        chunk: dict[str, Any] = {"is_final": response.parameters["triton_final_response"].bool_param}
        self._has_ended = chunk["is_final"]
        for output in response.outputs:
            array = result.as_numpy(output.name)
            if output.name == "token_ids":
                chunk[output.name] = array.tolist()
            else:
                value = array.reshape(-1)[0]
                chunk[output.name] = value.decode() if isinstance(value, bytes) else int(value)
        if chunk.get("chunk_kind") == "failed":
            raise from_wire(chunk["details"])
        return chunk if len(chunk) > 1 else None


@contextmanager
def triton_stream(
    address: str, model: str, params: Any, *, input_ids: list[int] | None = None
) -> Iterator[TritonStream]:
    """Send one request; `params` is a JSON-able value, or bytes to send as they are."""
    text = params if isinstance(params, bytes) else json.dumps(params).encode()
    tensor = triton.InferInput("params", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([text], dtype=np.object_))
    inputs = [tensor]
    if input_ids is not None:
        ids = triton.InferInput("input_ids", [len(input_ids)], "INT32")
        ids.set_data_from_numpy(np.array(input_ids, dtype=np.int32))
        inputs.append(ids)
    results: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with triton.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: results.put((result, error)))
        client.async_stream_infer(model, inputs, enable_empty_final_response=True)
        stream = TritonStream(client, results)
        try:
            yield stream
        finally:
            stream.close()
