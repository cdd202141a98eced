# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Shape of a dense decoder, read from a transformers config. What the network cannot do fails here, by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritone.errors import Unsupported

FAMILIES = ("llama", "qwen3")
ROPE_TYPES = ("default", "linear", "llama3")


@dataclass(frozen=True)
class RopeConfig:
    """Rotary embedding: base and how frequencies are stretched."""

    theta: float
    type: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of one dense decoder."""

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    max_position: int
    tied_embeddings: bool
    has_qk_norm: bool
    rope: RopeConfig

    @property
    def q_size(self) -> int:
        """Width of the query projection."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of the key projection, which is also that of the value projection."""
        return self.num_kv_heads * self.head_dim

    def kv_bytes_per_token(self, element_bytes: int) -> int:
        """KV cache one token takes over all layers."""
        return 2 * self.num_layers * self.kv_size * element_bytes


def decoder_config(config: Any) -> DecoderConfig:
    """The `DecoderConfig` of a transformers config; raises `Unsupported` naming the key we do not run."""
    family = config.model_type
    if family not in FAMILIES:
        raise _unsupported("model_type", family, ", ".join(FAMILIES))
    _require(config, "hidden_act", ("silu",))
    _require(config, "attention_bias", (False, None))
    _require(config, "mlp_bias", (False, None))
    _require(config, "use_sliding_window", (False, None))
    _require(config, "quantization_config", (None,))
    for layer_type in getattr(config, "layer_types", None) or ():
        if layer_type != "full_attention":
            raise _unsupported("layer_types", layer_type, "full_attention")
    num_heads = int(config.num_attention_heads)
    num_kv_heads = int(getattr(config, "num_key_value_heads", None) or num_heads)
    if num_heads % num_kv_heads:
        raise _unsupported("num_key_value_heads", num_kv_heads, f"a divisor of num_attention_heads ({num_heads})")
    head_dim = int(getattr(config, "head_dim", None) or config.hidden_size // num_heads)
    if head_dim % 2:
        raise _unsupported("head_dim", head_dim, "an even number")
    return DecoderConfig(
        family=family,
        vocab_size=int(config.vocab_size),
        hidden_size=int(config.hidden_size),
        intermediate_size=int(config.intermediate_size),
        num_layers=int(config.num_hidden_layers),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rms_norm_eps=float(config.rms_norm_eps),
        max_position=int(config.max_position_embeddings),
        tied_embeddings=bool(config.tie_word_embeddings),
        has_qk_norm=family == "qwen3",
        rope=_rope(config),
    )


def _rope(config: Any) -> RopeConfig:
    parameters = dict(getattr(config, "rope_parameters", None) or {})
    kind = parameters.pop("rope_type", "default")
    if kind not in ROPE_TYPES:
        raise _unsupported("rope_parameters.rope_type", kind, ", ".join(ROPE_TYPES))
    if parameters.pop("partial_rotary_factor", 1.0) != 1.0:
        raise _unsupported("rope_parameters.partial_rotary_factor", "not 1", "1")
    theta = parameters.pop("rope_theta", None) or getattr(config, "rope_theta", None) or 10000.0
    values = {key: float(value) for key, value in parameters.items() if isinstance(value, int | float)}
    if kind == "llama3":
        for key in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"):
            if key not in values:
                raise _unsupported(f"rope_parameters.{key}", None, "a number")
    if kind == "linear" and "factor" not in values:
        raise _unsupported("rope_parameters.factor", None, "a number")
    return RopeConfig(float(theta), kind, values)


def _require(config: Any, key: str, allowed: tuple[object, ...]) -> None:
    value = getattr(config, key, None)
    if value not in allowed:
        raise _unsupported(key, value, " or ".join(repr(item) for item in allowed))


def _unsupported(key: str, value: object, allowed: str) -> Unsupported:
    return Unsupported(f"checkpoint config {key} is {str(value)[:200]!r}; this decoder runs {allowed}", field=key)
