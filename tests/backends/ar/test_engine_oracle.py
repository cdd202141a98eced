# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Token for token against transformers' `generate`, on the packaged SmolLM2 and on tiny random networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from tritone.backends.ar.prompt import render_prompt
from tritone.backends.ar.request import parse_request
from tritone.backends.models.checkpoint import Checkpoint

NUM_TOKENS = 64
QUESTIONS = (
    "What is the capital of France? Explain in detail.",
    "Tell me a story about a dragon.",
    "Write a Python function that adds two numbers.",
    "Write a poem about rain.",
    "Who was Isaac Newton?",
    "List ten fruits.",
    "Explain how gravity works to a child.",
    "Beschreibe Berlin in drei Sätzen.",
)


def _generate(model: Any, prompts: list[list[int]], num_tokens: int) -> list[list[int]]:
    """Greedy continuations, each prompt by itself; an end token ends them."""
    outputs = []
    with torch.inference_mode():
        for prompt in prompts:
            ids = torch.tensor([prompt])
            mask = torch.ones_like(ids)
            whole = model.generate(ids, attention_mask=mask, max_new_tokens=num_tokens, do_sample=False, pad_token_id=0)
            outputs.append(whole[0, len(prompt) :].tolist())
    return outputs


@pytest.fixture(scope="module")
def prompts(smollm2: Checkpoint) -> list[list[int]]:
    def render(question: str) -> list[int]:
        request = parse_request({"messages": [{"role": "user", "content": question}]})
        return render_prompt(smollm2.tokenizer, request, context_tokens=256)

    return [render(question) for question in QUESTIONS]


@pytest.fixture(scope="module")
def expected(smollm2: Checkpoint, prompts: list[list[int]]) -> list[list[int]]:
    """What transformers generates."""
    path = smollm2.path
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    return _generate(model, prompts, NUM_TOKENS)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("prefix_caching", [True, False])
@pytest.mark.parametrize("chunked_prefill", [True, False])
def test_smollm2_greedy_equals_generate(
    smollm2: Checkpoint,
    prompts: list[list[int]],
    expected: list[list[int]],
    drive: Any,
    prefix_caching: bool,
    chunked_prefill: bool,
) -> None:
    driver = drive(
        smollm2,
        context_tokens=256,
        max_step_tokens=24 if chunked_prefill else 256,
        prefix_caching=prefix_caching,
        chunked_prefill=chunked_prefill,
    )
    if chunked_prefill == prefix_caching:
        assert [driver.generate(prompt, max_tokens=NUM_TOKENS) for prompt in prompts] == expected
    together = [driver.submit(prompt, max_tokens=NUM_TOKENS) for prompt in prompts]
    driver.run()
    assert [driver.tokens(request_id) for request_id in together] == expected
    hits = driver.engine.statistics().prefix_hits
    assert (hits > 0) == prefix_caching


@pytest.mark.slow
def test_smollm2_sampled_is_the_same_in_any_company(smollm2: Checkpoint, prompts: list[list[int]], drive: Any) -> None:
    sampled: dict[str, Any] = {"temperature": 0.9, "top_p": 0.95, "seed": 42, "max_tokens": 24}
    # Too few blocks for eight rows: the newest are put back and computed again.
    driver = drive(smollm2, context_tokens=96, num_blocks=48, block_tokens=4)
    alone = driver.generate(prompts[0], **sampled)
    others = [driver.submit(prompt, temperature=1.0, seed=i, max_tokens=24) for i, prompt in enumerate(prompts[1:])]
    mine = driver.submit(prompts[0], **sampled)
    for _ in range(4):
        driver.engine.step()
    driver.engine.cancel(others[0])
    driver.run()
    assert driver.tokens(mine) == alone
    assert driver.engine.statistics().recomputes > 0


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {}),
        ("llama", {"tie_word_embeddings": True, "num_key_value_heads": 6}),
        (
            "llama",
            {
                "rope_parameters": {
                    "rope_type": "llama3",
                    "rope_theta": 500.0,
                    "factor": 4.0,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 64,
                }
            },
        ),
        ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}),
        ("qwen3", {"tie_word_embeddings": True}),
        ("qwen3", {"head_dim": 32}),
    ],
)
@pytest.mark.parametrize("max_step_tokens", [8, 256])
def test_tiny_network_equals_generate(
    make_checkpoint: Any, drive: Any, family: str, changes: dict[str, Any], max_step_tokens: int
) -> None:
    folder: Path = make_checkpoint(family, **changes)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    generator = torch.Generator().manual_seed(3)
    prompts = [torch.randint(0, 256, (length,), generator=generator).tolist() for length in (1, 2, 15, 16, 17, 40, 90)]
    expected = _generate(model, prompts, 32)
    driver = drive(Checkpoint.resolve(str(folder)), max_step_tokens=max_step_tokens, num_blocks=64)
    together = [driver.submit(prompt, max_tokens=32) for prompt in prompts]
    driver.run()
    assert [driver.tokens(request_id) for request_id in together] == expected
    assert [driver.generate(prompt, max_tokens=32) for prompt in prompts] == expected
