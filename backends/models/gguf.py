# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Config, tokenizer and tensors of a GGUF file, through transformers' own GGUF reader.

`AutoTokenizer` and `AutoConfig` walk the file several times in Python (6 s for a vocabulary of 49 k); the reader below
them takes a tenth of a second, so we call that and translate the few names ourselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tritone.errors import Unsupported

_ARCHITECTURES = {"llama": "llama", "qwen3": "qwen3"}
_PLAIN_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


class GgufFile:
    """One GGUF file. Only its header is read at construction."""

    def __init__(self, path: Path) -> None:
        try:
            from transformers.integrations.gguf.reader import GgufHeader, load_gguf_state_dict, read_gguf_metadata
        except ImportError:
            raise Unsupported("reading GGUF files needs transformers 5.24 or later", field="checkpoint") from None
        self._path = path
        self._metadata: dict[str, Any] = read_gguf_metadata(str(path))[0]
        header = GgufHeader.from_file(str(path))
        self._shapes = {info.name: info.shape for info in header.tensors}
        self._tensors = load_gguf_state_dict(header)

    def config(self) -> Any:
        """A transformers config."""
        from transformers import AutoConfig

        architecture = self._metadata["general.architecture"]
        if architecture not in _ARCHITECTURES:
            known = ", ".join(sorted(_ARCHITECTURES))
            raise Unsupported(f"GGUF architecture is {architecture!r}; this decoder runs {known}", field="model_type")

        def get(name: str, default: Any = None) -> Any:
            return self._metadata.get(f"{architecture}.{name}", default)

        scaling = get("rope.scaling.type")
        if scaling not in (None, "none") or "rope_freqs.weight" in self._tensors:
            raise Unsupported("GGUF rope scaling is not supported; use the safetensors form", field="rope.scaling.type")
        num_heads = get("attention.head_count")
        return AutoConfig.for_model(
            _ARCHITECTURES[architecture],
            # The reader leaves the vocabulary as its length.
            vocab_size=self._metadata["tokenizer.ggml.tokens"],
            hidden_size=get("embedding_length"),
            intermediate_size=get("feed_forward_length"),
            num_hidden_layers=get("block_count"),
            num_attention_heads=num_heads,
            num_key_value_heads=get("attention.head_count_kv", num_heads),
            head_dim=get("attention.key_length", get("embedding_length") // num_heads),
            max_position_embeddings=get("context_length"),
            rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
            rope_parameters={"rope_type": "default", "rope_theta": get("rope.freq_base", 10000.0)},
            tie_word_embeddings="output.weight" not in self._tensors,
            bos_token_id=self._metadata.get("tokenizer.ggml.bos_token_id"),
            eos_token_id=self._metadata.get("tokenizer.ggml.eos_token_id"),
            pad_token_id=self._metadata.get("tokenizer.ggml.padding_token_id"),
        )

    def tokenizer(self) -> Any:
        """A transformers tokenizer with the file's chat template."""
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast.from_pretrained(str(self._path.parent), gguf_file=self._path.name)

    def read(self, name: str) -> torch.Tensor:
        """The float tensor transformers calls `name`; raises KeyError where the file has none."""
        from transformers.integrations.gguf.dequant import dequantize

        stored = self._tensors[_gguf_name(name)]
        blocks = stored[...]
        if blocks.dtype == torch.uint8:
            blocks = dequantize(blocks, stored.ggml_type, torch.float32).view(self._shapes[_gguf_name(name)])
        if self._metadata["general.architecture"] == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            return self._paired_to_halves(name, blocks)
        return blocks

    def _paired_to_halves(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        """llama.cpp stores Llama's rotary dimensions in pairs, transformers in halves."""
        key = "attention.head_count" if ".q_proj." in name else "attention.head_count_kv"
        num_heads = self._metadata.get(f"llama.{key}", self._metadata["llama.attention.head_count"])
        rows, hidden = weight.shape
        return weight.view(num_heads, rows // num_heads // 2, 2, hidden).transpose(1, 2).reshape(rows, hidden)


def _gguf_name(name: str) -> str:
    if name in _PLAIN_NAMES:
        return _PLAIN_NAMES[name]
    layer, _, module = name.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{_LAYER_NAMES[module.removesuffix('.weight')]}.weight"
