# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Read a stream from Triton itself, without the gateway: `tritone serve --triton-grpc-port 8001`."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from tritonclient.grpc import InferInput
from tritonclient.grpc.aio import InferenceServerClient


def generation(settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of one request: a model, and all settings as one JSON text."""
    params = InferInput("params", [1], "BYTES")
    params.set_data_from_numpy(np.array([json.dumps(settings).encode()], dtype=np.object_))
    return {"model_name": "smollm2_chat", "inputs": [params]}


def first(result: Any, name: str) -> Any:
    """The one value of a tensor; None when the chunk does not carry it."""
    array = result.as_numpy(name)
    return None if array is None or array.size == 0 else array.reshape(-1)[0]


async def main() -> None:
    settings = {
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "max_tokens": 64,
        "temperature": 0,
    }

    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield generation(settings)

    async with InferenceServerClient("127.0.0.1:8001") as client:
        async for result, error in client.stream_infer(requests()):
            if error is not None:
                raise SystemExit(error.message())  # JSON: code, field, message, retry_after_s
            kind = first(result, "chunk_kind")
            if kind == b"text":
                print((first(result, "text") or b"").decode(), end="", flush=True)
            elif kind == b"done":
                print("\n", json.loads(first(result, "details")))
                break


if __name__ == "__main__":
    asyncio.run(main())
