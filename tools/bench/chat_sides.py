# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The sides of the chat benchmark: transformers' generate, the weight products alone, and the engine alone."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from tritone.backends.ar.engine import Engine, Event, RequestDone, RequestFailed, TokenChunk
from tritone.backends.ar.request import GenerationRequest, SamplingParams
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.models.checkpoint import Checkpoint


class TransformersSide:
    """transformers' own generate on the same weights, greedy, exactly `new_tokens` tokens."""

    def __init__(self, checkpoint: Checkpoint, device: str, dtype: torch.dtype, new_tokens: int) -> None:
        path = checkpoint.path
        if path.is_file():
            model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=dtype)
        else:
            model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
        # torch wraps PreTrainedModel.to in a way that loses its signature.
        move: Any = model.to
        self._model = move(device).eval()
        self._model.generation_config.eos_token_id = None
        self._pad_id = self._model.generation_config.pad_token_id or 0
        self._device = device
        self._new_tokens = new_tokens

    def generate(self, prompts: list[list[int]]) -> float:
        """Tokens per second of one call with all `prompts`, padded on the left."""
        longest = max(len(prompt) for prompt in prompts)
        ids = torch.full((len(prompts), longest), self._pad_id)  # [B, T] int64
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt)
            mask[row, longest - len(prompt) :] = 1
        ids, mask = ids.to(self._device), mask.to(self._device)
        began = time.perf_counter()
        with torch.inference_mode():
            output = self._model.generate(
                ids,
                attention_mask=mask,
                do_sample=False,
                max_new_tokens=self._new_tokens,
                pad_token_id=self._pad_id,
            )
        output.cpu()
        seconds = time.perf_counter() - began
        assert output.shape[1] == longest + self._new_tokens
        return len(prompts) * self._new_tokens / seconds

    def generate_one_by_one(self, prompts: list[list[int]]) -> float:
        """Tokens per second of one call for each prompt."""
        began = time.perf_counter()
        for prompt in prompts:
            self.generate([prompt])
        return len(prompts) * self._new_tokens / (time.perf_counter() - began)


class WeightProductsSide:
    """The matrix products of one decode step and nothing else, with random weights of the checkpoint's shapes."""

    def __init__(self, config: Any, device: str, dtype: torch.dtype, steps: int) -> None:
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        hidden, inner = config.hidden_size, config.intermediate_size
        layer = [
            ((heads + 2 * kv_heads) * head_dim, hidden),
            (hidden, heads * head_dim),
            (2 * inner, hidden),
            (hidden, inner),
        ]
        shapes = layer * config.num_hidden_layers + [(config.vocab_size, hidden)]
        self._weights = [torch.randn(shape, device=device, dtype=dtype) for shape in shapes]
        self._device, self._dtype, self._steps = device, dtype, steps
        self.num_bytes = sum(weight.numel() * weight.element_size() for weight in self._weights)

    def rate(self, rows: int) -> float:
        """Tokens per second that the products alone would allow with `rows` rows."""
        inputs = {
            weight.shape[1]: torch.randn(rows, weight.shape[1], device=self._device, dtype=self._dtype)
            for weight in self._weights
        }
        began = time.perf_counter()
        with torch.inference_mode():
            for _ in range(self._steps):
                for weight in self._weights:
                    torch.nn.functional.linear(inputs[weight.shape[1]], weight)
        if self._device == "cuda":
            torch.cuda.synchronize()
        return rows * self._steps / (time.perf_counter() - began)


class EngineSide:
    """The AR engine in this process, greedy, exactly `new_tokens` tokens a request.

    It steps in the caller's thread, as the other sides compute there: a second thread with a team of OpenMP workers of
    its own would slow both sides down (see ThinkerStage.load).
    """

    def __init__(self, checkpoint: Checkpoint, settings: EngineSettings, new_tokens: int) -> None:
        self._new_tokens = new_tokens
        self._first_s: dict[int, float] = {}
        self._last_s: dict[int, float] = {}
        self._waiting: set[int] = set()
        self._failures: list[str] = []
        self._engine = Engine(checkpoint, settings, self._take)

    def _take(self, events: list[Event]) -> None:
        now = time.perf_counter()
        for event in events:
            if isinstance(event, TokenChunk):
                self._first_s.setdefault(event.request_id, now)
                self._last_s[event.request_id] = now
            elif isinstance(event, RequestDone | RequestFailed):
                if isinstance(event, RequestFailed):
                    self._failures.append(event.error.message)
                self._waiting.discard(event.request_id)

    def _run(self, prompts: list[list[int]], new_tokens: int) -> float:
        """Seconds from the first submission to the last token of all."""
        sampling = SamplingParams(temperature=0.0, max_tokens=new_tokens, ignore_eos=True)
        self._first_s.clear()
        self._last_s.clear()
        began = time.perf_counter()
        for prompt in prompts:
            request = GenerationRequest(prompt_token_ids=tuple(prompt), sampling=sampling)
            self._waiting.add(self._engine.submit(request))
        while self._waiting:
            if not self._engine.step():
                raise RuntimeError("the engine has nothing to do, but requests are open")
        if self._failures:
            raise RuntimeError(self._failures[0])
        return max(self._last_s.values()) - began

    def rate(self, prompts: list[list[int]]) -> float:
        """Tokens per second of all `prompts` at once, prefill included."""
        return len(prompts) * self._new_tokens / self._run(prompts, self._new_tokens)

    def decode_rate(self, prompts: list[list[int]]) -> float:
        """Tokens per second from the moment every prompt has its first token."""
        self._run(prompts, self._new_tokens)
        started = max(self._first_s.values())
        return len(prompts) * (self._new_tokens - 1) / (max(self._last_s.values()) - started)

    def first_token_s(self, prompt: list[int]) -> float:
        """Seconds to the first token of one request."""
        return self._run([prompt], 1)
