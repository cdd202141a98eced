# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in the official layout with random weights: for speed, where the numbers matter and the words do not.

The tokenizer is a byte-level one of 258 entries, so that nothing has to be downloaded; ids beyond it decode to nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config


class Qwen3Shape(NamedTuple):
    """What differs between the Qwen3 sizes here."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int


# Of Qwen/Qwen3-1.7B and Qwen/Qwen3-0.6B, from their config.json.
QWEN3_SHAPES = {"qwen3-1.7b": Qwen3Shape(2048, 6144, 28), "qwen3-0.6b": Qwen3Shape(1024, 3072, 28)}
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
END_ID = 256


def write_random_qwen3(folder: Path, shape: str, device: str) -> None:
    """Write a bfloat16 checkpoint of one of `QWEN3_SHAPES` to `folder`, weights drawn on `device` from seed 0."""
    sizes = QWEN3_SHAPES[shape]
    config = Qwen3Config(
        hidden_size=sizes.hidden_size,
        intermediate_size=sizes.intermediate_size,
        num_hidden_layers=sizes.num_hidden_layers,
        vocab_size=151936,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40960,
        tie_word_embeddings=True,
        eos_token_id=END_ID,
        bos_token_id=None,
        pad_token_id=END_ID,
    )
    # transformers is only partly typed.
    make_model: Any = AutoModelForCausalLM.from_config
    torch.manual_seed(0)
    with torch.device(device):
        model = make_model(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    _byte_tokenizer().save_pretrained(folder)


def _byte_tokenizer() -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    assert tokenizer.token_to_id("<|end|>") == END_ID
    wrap: Any = PreTrainedTokenizerFast
    fast = wrap(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    fast.chat_template = CHAT_TEMPLATE
    return fast
