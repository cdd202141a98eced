# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Stop a request after three chunks: by cancelling its stream, and by its handle from another stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from tritonclient.grpc import InferInput
from tritonclient.grpc.aio import InferenceServerClient

ENDLESS = {"prompt": "Once upon a time", "max_tokens": 2000, "ignore_eos": True}


def request(settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of one request."""
    params = InferInput("params", [1], "BYTES")
    params.set_data_from_numpy(np.array([json.dumps(settings).encode()], dtype=np.object_))
    return {"model_name": "smollm2_chat", "inputs": [params]}


async def single(settings: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """A stream of one request."""
    yield request(settings)


async def cancel_by_stream(client: InferenceServerClient) -> None:
    """What a closed connection does too: the row is gone before the engine's next step."""
    stream = client.stream_infer(single(ENDLESS))
    num_chunks = 0
    async for _ in stream:
        num_chunks += 1
        if num_chunks == 3:
            stream.cancel()
            break


async def cancel_by_handle(client: InferenceServerClient) -> None:
    """The first chunk of a request with `accept` holds its handle; any client that knows it may cancel."""
    num_chunks = 0
    handle = ""
    async for result, error in client.stream_infer(single({**ENDLESS, "accept": True})):
        if error is not None:
            raise SystemExit(error.message())  # refused: nothing came before it
        kind = result.as_numpy("chunk_kind")[0]
        if kind == b"accepted":
            handle = json.loads(result.as_numpy("details")[0])["handle"]
        elif kind == b"failed":
            print("ended:", json.loads(result.as_numpy("details")[0])["code"])  # cancelled
            break
        num_chunks += 1
        if num_chunks == 3:
            async for answer, _ in client.stream_infer(single({"cancel": handle})):
                print(json.loads(answer.as_numpy("details")[0]))  # {"cancelled": true}
                break


async def main() -> None:
    async with InferenceServerClient("127.0.0.1:8001") as client:
        await cancel_by_stream(client)
        await cancel_by_handle(client)


if __name__ == "__main__":
    asyncio.run(main())
