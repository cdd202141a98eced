# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The served sides of the chat benchmark: through the gateway and the orchestrator, and straight to the stage."""

from __future__ import annotations

import asyncio
import json
import queue
import time
from typing import Any

import httpx
import numpy as np
import tritonclient.grpc as triton

HANG_S = 600.0


class GatewaySide:
    """Streamed completions over HTTP, one connection for each concurrent request."""

    def __init__(self, url: str, model: str, new_tokens: int) -> None:
        self._url = f"{url}/v1/completions"
        self._model = model
        self._new_tokens = new_tokens

    def _body(self, prompt: list[int], new_tokens: int) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": new_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def rate(self, prompts: list[list[int]]) -> float:
        """Tokens per second of all `prompts` at once, from the first byte sent to the last byte received."""
        return asyncio.run(self._rate(prompts))

    async def _rate(self, prompts: list[list[int]]) -> float:
        async with httpx.AsyncClient(timeout=HANG_S) as client:
            began = time.perf_counter()
            counts = await asyncio.gather(*(self._stream(client, prompt) for prompt in prompts))
            seconds = time.perf_counter() - began
        assert counts == [self._new_tokens] * len(prompts), counts
        return sum(counts) / seconds

    async def _stream(self, client: httpx.AsyncClient, prompt: list[int]) -> int:
        last = ""
        async with client.stream("POST", self._url, json=self._body(prompt, self._new_tokens)) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    last = line
        usage: dict[str, int] = json.loads(last[len("data: ") :])["usage"]
        return usage["completion_tokens"]

    def first_token_s(self, client: httpx.Client, prompt: list[int]) -> float:
        """Seconds from the first byte sent to the first event received."""
        began = time.perf_counter()
        with client.stream("POST", self._url, json=self._body(prompt, 2)) as response:
            response.raise_for_status()
            lines = response.iter_lines()
            next(line for line in lines if line.startswith("data: {") and '"text":""' not in line)
            seconds = time.perf_counter() - began
            for _ in lines:
                pass
        return seconds


class StageSide:
    """The thinker called directly over one gRPC stream, as a Triton client does."""

    def __init__(self, address: str, model: str) -> None:
        self._model = model
        self._results: queue.Queue[tuple[Any, Any]] = queue.Queue()
        self._client = triton.InferenceServerClient(address)
        self._client.start_stream(lambda result, error: self._results.put((result, error)))

    def stop(self) -> None:
        """Close the stream."""
        self._client.stop_stream()
        self._client.close()

    def first_token_s(self, prompt: list[int]) -> float:
        """Seconds from the request to the first text chunk."""
        params = triton.InferInput("params", [1], "BYTES")
        text = json.dumps({"max_tokens": 2, "temperature": 0, "ignore_eos": True}).encode()
        params.set_data_from_numpy(np.array([text], dtype=np.object_))
        ids = triton.InferInput("input_ids", [len(prompt)], "INT32")
        ids.set_data_from_numpy(np.array(prompt, dtype=np.int32))
        began = time.perf_counter()
        self._client.async_stream_infer(self._model, [params, ids])
        seconds = 0.0
        while True:
            result, error = self._results.get(timeout=HANG_S)
            if error is not None:
                raise error
            seconds = seconds or time.perf_counter() - began
            if result.as_numpy("chunk_kind")[0] == b"done":
                return seconds
