# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the AR engine: one frozen dataclass, checked when it is made. Knows no model and no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tritone.errors import InvalidRequest

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class EngineSettings:
    """How the engine runs. Every value is checked at construction; a bad one raises and names its key."""

    device: str = "auto"  # "auto" is cuda where there is one
    dtype: str = "auto"  # "auto" is bfloat16 on cuda, float32 on cpu
    block_tokens: int = 16  # tokens of one KV block
    num_blocks: int | None = None  # size of the KV pool in blocks; or
    kv_cache_bytes: int | None = None  # ... in bytes. Neither: enough for max_rows rows, bounded by memory
    max_rows: int = 16  # rows decoded together
    max_step_tokens: int = 512  # tokens one step may run, decode rows and prompt chunks together
    max_waiting: int = 64  # requests open beyond max_rows before the next one is refused with Overloaded
    context_tokens: int | None = None  # prompt + output of one row; default what the checkpoint allows
    prefix_caching: bool = True
    chunked_prefill: bool = True  # false: a prompt runs in one step, whatever the budget says
    reserve_full_kv: bool = False  # KV for prompt + max_tokens held from admission on, so rows are never put back
    num_threads: int | None = None  # CPU threads; default the physical cores
    cuda_graphs: bool = True
    deterministic: bool = False  # ids independent of the batch on a GPU too, at some cost in speed

    def __post_init__(self) -> None:
        _check_choice("device", self.device, DEVICES)
        _check_choice("dtype", self.dtype, DTYPES)
        _check_int("block_tokens", self.block_tokens, 1, 256)
        if self.block_tokens & (self.block_tokens - 1):
            raise _bad("block_tokens", self.block_tokens, "a power of two from 1 to 256")
        _check_optional_int("num_blocks", self.num_blocks, 1, 1 << 24)
        _check_optional_int("kv_cache_bytes", self.kv_cache_bytes, 1, 1 << 44)
        if self.num_blocks is not None and self.kv_cache_bytes is not None:
            raise _bad("kv_cache_bytes", self.kv_cache_bytes, "null when num_blocks is given")
        _check_int("max_rows", self.max_rows, 1, 1024)
        _check_int("max_step_tokens", self.max_step_tokens, 1, 1 << 20)
        if self.max_step_tokens < self.max_rows:
            raise _bad("max_step_tokens", self.max_step_tokens, f"at least max_rows ({self.max_rows})")
        _check_int("max_waiting", self.max_waiting, 1, 1 << 16)
        _check_optional_int("context_tokens", self.context_tokens, 2, 1 << 24)
        _check_optional_int("num_threads", self.num_threads, 1, 1024)
        for key in ("prefix_caching", "chunked_prefill", "reserve_full_kv", "cuda_graphs", "deterministic"):
            if not isinstance(getattr(self, key), bool):
                raise _bad(key, getattr(self, key), "true or false")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> EngineSettings:
        """Settings from JSON or YAML. An unknown key is an error, a missing one takes its default."""
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise InvalidRequest(f"unknown engine setting {key!r}; known: {', '.join(known)}", field=key)
        return cls(**values)


def _bad(key: str, value: object, allowed: str) -> InvalidRequest:
    return InvalidRequest(f"engine setting {key} is {value!r}; allowed: {allowed}", field=key)


def _check_choice(key: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise _bad(key, value, ", ".join(allowed))


def _check_int(key: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _bad(key, value, f"an integer from {low} to {high}")


def _check_optional_int(key: str, value: object, low: int, high: int) -> None:
    if value is not None:
        _check_int(key, value, low, high)
