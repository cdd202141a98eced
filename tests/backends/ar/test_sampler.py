# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The sampler against transformers' logits processors, and the statistics of its draws."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from tritone.backends.ar.random_numbers import uniform
from tritone.backends.ar.request import SamplingParams
from tritone.backends.ar.row import Row
from tritone.backends.ar.sampler import draw

VOCAB = 900


def make_row(prompt: list[int], output: list[int], seed: int = 0, **sampling: Any) -> Row:
    nothing: Any = None  # the sampler does not look at text
    return Row(
        request_id=0, choice_index=0, seed=seed, sampling=SamplingParams(**sampling), stop_ids=frozenset({3}),
        token_ids=prompt + output, num_prompt=len(prompt), max_total=10_000, salt=b"", detokenizer=nothing, guide=None,
    )  # fmt: skip


def logits_of(seed: int, spread: float = 3.0) -> torch.Tensor:
    return torch.randn(VOCAB, generator=torch.Generator().manual_seed(seed)) * spread


CASES: list[dict[str, Any]] = [
    {},
    {"temperature": 0.3},
    {"top_k": 5},
    {"top_k": 1},
    {"top_k": 100_000},
    {"top_p": 0.4},
    {"top_p": 0.999999},
    {"top_p": 1e-6},
    {"min_p": 0.2},
    {"top_k": 20, "top_p": 0.7, "min_p": 0.05, "temperature": 1.7},
    {"repetition_penalty": 1.4},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("spread", [0.05, 3.0])
def test_the_kept_tokens_and_their_shares_equal_transformers(case: dict[str, Any], spread: float) -> None:
    prompt = [1, 2, 3, 4]
    logits = logits_of(1, spread)
    scores = logits[None].clone()
    ids: Any = torch.tensor([prompt])  # typed as LongTensor there
    if "repetition_penalty" in case:
        scores = RepetitionPenaltyLogitsProcessor(case["repetition_penalty"])(ids, scores)
    scores = TemperatureLogitsWarper(case.get("temperature", 1.0))(ids, scores)
    if "top_k" in case:
        scores = TopKLogitsWarper(case["top_k"])(ids, scores)
    if "top_p" in case:
        scores = TopPLogitsWarper(case["top_p"])(ids, scores)
    if "min_p" in case:
        scores = MinPLogitsWarper(case["min_p"])(ids, scores)
    edges = scores[0].double().softmax(dim=-1).cumsum(dim=-1)
    rows = [make_row(prompt, [], seed=seed, **case) for seed in range(300)]
    drawn = [d.token_id for d in draw(logits.expand(len(rows), -1).clone(), rows)]
    # The draw inverts the distribution in order of id, so every single token is known.
    for row, token_id in zip(rows, drawn, strict=True):
        number = uniform(row.seed, 0, len(prompt))
        low = edges[token_id - 1].item() if token_id else 0.0
        assert low - 1e-5 <= number <= edges[token_id].item() + 1e-5
        assert scores[0, token_id] > float("-inf")


def test_rows_do_not_see_each_other() -> None:
    rows = [make_row([1], [5, 6], seed=i, **case) for i, case in enumerate(CASES)]
    logits = torch.stack([logits_of(i) for i in range(len(rows))])
    together = [d.token_id for d in draw(logits.clone(), rows)]
    alone = [draw(logits[i : i + 1].clone(), [row])[0].token_id for i, row in enumerate(rows)]
    assert together == alone


def test_penalties_and_bias() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, 7], logits[0, 8], logits[0, 9] = 3.0, 2.0, 1.5
    greedy: dict[str, Any] = {"temperature": 0.0}
    assert draw(logits.clone(), [make_row([7], [], **greedy, presence_penalty=2.0)])[0].token_id == 7
    assert draw(logits.clone(), [make_row([1], [7], **greedy, presence_penalty=2.0)])[0].token_id == 8
    assert draw(logits.clone(), [make_row([1], [7, 7, 8], **greedy, frequency_penalty=1.0)])[0].token_id == 9
    assert draw(logits.clone(), [make_row([1], [], **greedy, logit_bias={7: -100.0, 30: 5.0})])[0].token_id == 30
    banned = make_row([1], [], **greedy, min_tokens=1, logit_bias={3: 50.0})
    assert draw(logits.clone(), [banned])[0].token_id == 7


def test_logprobs_are_the_models_own() -> None:
    logits = logits_of(4)[None]
    expected = logits[0].log_softmax(dim=-1)
    row = make_row([1], [], temperature=0.5, top_k=3, logprobs=True, top_logprobs=4)
    (drawn,) = draw(logits.clone(), [row])
    assert drawn.logprob == pytest.approx(expected[drawn.token_id].item(), abs=1e-6)
    best = expected.topk(4)
    assert [token_id for token_id, _ in drawn.top] == best.indices.tolist()


def test_uniform_numbers() -> None:
    numbers = [uniform(5, choice, position) for choice in range(4) for position in range(5000)]
    assert len(set(numbers)) == len(numbers)
    assert all(0.0 <= number < 1.0 for number in numbers)
    tenths = Counter(int(number * 10) for number in numbers)
    assert all(abs(count - 2000) < 200 for count in tenths.values())
    assert uniform(-(1 << 63), 0, 0) != uniform((1 << 63) - 1, 0, 0)
