# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the next token of each row from its logits. Exact, and each row by itself.

Order: repetition, presence and frequency penalty, logit bias, min_tokens, grammar, temperature, top-k, top-p, min-p.
A filter is a threshold on the scaled logits; the draw walks the kept tokens in order of id, so that two tokens of
nearly equal probability never change places with the batch. Log-probabilities are the model's own, before all that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tritone.backends.ar.random_numbers import uniform
from tritone.backends.ar.row import Row
from tritone.errors import Internal, TritoneError

# Enough for top-p in nearly every case; a row whose mass lies deeper is sorted in full.
_TOP_P_CANDIDATES = 512


@dataclass(frozen=True)
class Draw:
    """The token drawn for a row, with log-probabilities where the row wants them, or why there is none."""

    token_id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    error: TritoneError | None = None


def draw(logits: torch.Tensor, rows: Sequence[Row]) -> list[Draw]:
    """One draw per row. `logits` is [R, V] float32 and may be overwritten."""
    if all(_is_plain_greedy(row) for row in rows):
        return [_checked(token_id, is_finite) for token_id, is_finite in zip(*_highest(logits), strict=True)]
    own = {i: logits[i].log_softmax(dim=-1) for i, row in enumerate(rows) if row.sampling.logprobs}
    errors: dict[int, TritoneError] = {}
    for index, row in enumerate(rows):
        try:
            _shape(logits[index], row)
        except TritoneError as error:
            errors[index] = error
    ids, is_good = _choose(logits, rows)
    draws = []
    for index, (row, token_id) in enumerate(zip(rows, ids, strict=True)):
        if index in errors:
            draws.append(Draw(-1, error=errors[index]))
        elif index in own and is_good[index]:
            draws.append(_with_logprobs(token_id, own[index], row.sampling.top_logprobs))
        else:
            draws.append(_checked(token_id, is_good[index]))
    return draws


def _is_plain_greedy(row: Row) -> bool:
    sampling = row.sampling
    return (
        sampling.temperature == 0.0
        and sampling.repetition_penalty == 1.0
        and sampling.presence_penalty == 0.0
        and sampling.frequency_penalty == 0.0
        and not sampling.logit_bias
        and not sampling.logprobs
        and row.guide is None
        and row.num_output >= sampling.min_tokens
    )


def _checked(token_id: int, is_good: bool) -> Draw:
    if is_good:
        return Draw(token_id)
    return Draw(-1, error=Internal("the model produced no valid probabilities for this request"))


def _highest(logits: torch.Tensor) -> tuple[list[int], list[bool]]:
    """Highest token of each row, and whether its logit is finite. A NaN anywhere in a row is its maximum."""
    if logits.is_cpu:
        # NumPy's search is vectorised, PyTorch's is not: 10 us against 55 for a row of 49,152.
        ids = logits.numpy().argmax(axis=-1)
        return ids.tolist(), [math.isfinite(row[i]) for row, i in zip(logits.numpy(), ids, strict=True)]
    best, highest = logits.max(dim=-1)
    return highest.tolist(), best.isfinite().tolist()


def _with_logprobs(token_id: int, logprobs: torch.Tensor, num_top: int) -> Draw:
    top: tuple[tuple[int, float], ...] = ()
    if num_top:
        values, ids = logprobs.topk(min(num_top, logprobs.numel()))
        top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return Draw(token_id, logprobs[token_id].item(), top)


def _shape(logits: torch.Tensor, row: Row) -> None:
    """Apply in place what does not depend on temperature. `logits` is [V]."""
    sampling = row.sampling
    if sampling.repetition_penalty != 1.0:
        seen = torch.tensor(sorted(set(row.token_ids)), device=logits.device)
        scores = logits[seen]
        penalty = sampling.repetition_penalty
        logits[seen] = torch.where(scores < 0, scores * penalty, scores / penalty)
    if sampling.presence_penalty or sampling.frequency_penalty:
        counts = Counter(row.token_ids[row.num_prompt :])
        if counts:
            seen = torch.tensor(list(counts), device=logits.device)
            times = torch.tensor(list(counts.values()), device=logits.device, dtype=logits.dtype)
            logits[seen] -= times * sampling.frequency_penalty + sampling.presence_penalty
    if sampling.logit_bias:
        biased = torch.tensor(list(sampling.logit_bias), device=logits.device)
        logits[biased] += torch.tensor(list(sampling.logit_bias.values()), device=logits.device, dtype=logits.dtype)
    if row.guide is not None:
        # A complete grammar allows nothing but the end, so min_tokens does not apply.
        allowed = torch.from_numpy(row.guide.allowed()).to(logits.device)
        logits.masked_fill_(~allowed, float("-inf"))
    elif row.num_output < sampling.min_tokens and row.stop_ids:
        logits[torch.tensor(sorted(row.stop_ids), device=logits.device)] = float("-inf")


def _choose(logits: torch.Tensor, rows: Sequence[Row]) -> tuple[list[int], list[bool]]:
    """Token ids, and whether each row had a finite maximum."""
    chosen, is_good = _highest(logits)
    drawn = [i for i, row in enumerate(rows) if row.sampling.temperature > 0.0 and is_good[i]]
    if drawn:
        picked = torch.tensor(drawn, device=logits.device)
        for index, token_id in zip(drawn, _draw_random(logits[picked], [rows[i] for i in drawn]), strict=True):
            chosen[index] = token_id
            # An id that the vocabulary has not would fail the next step of every row.
            is_good[index] = 0 <= token_id < logits.shape[1]
    return chosen, is_good


def _draw_random(logits: torch.Tensor, rows: Sequence[Row]) -> list[int]:
    """[r, V] shaped logits → one token id per row."""
    device = logits.device
    temperatures = torch.tensor([row.sampling.temperature for row in rows], device=device)
    scaled = logits.div_(temperatures[:, None])
    highest = scaled.amax(dim=-1, keepdim=True)
    weights = (scaled - highest).exp_()
    floors = _floors(scaled, weights, rows)
    if floors is not None:
        weights.masked_fill_(scaled < floors[:, None], 0.0)
    # float64: 50,000 small float32 summands lose the digits that decide between neighbours.
    mass = weights.cumsum(dim=-1, dtype=torch.float64)
    numbers = [uniform(row.seed, row.choice_index, row.num_tokens) for row in rows]
    total = mass[:, -1]
    target = torch.tensor(numbers, dtype=torch.float64, device=device) * total
    target = torch.minimum(target, torch.nextafter(total, torch.zeros_like(total)))
    drawn: list[int] = torch.searchsorted(mass, target[:, None], right=True)[:, 0].tolist()
    return drawn


def _floors(scaled: torch.Tensor, weights: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor | None:
    """[r] lowest scaled logit each row keeps, or None if every row keeps all."""
    if all(r.sampling.top_k == 0 and r.sampling.top_p == 1.0 and r.sampling.min_p == 0.0 for r in rows):
        return None
    device = scaled.device
    floors = torch.full((len(rows),), float("-inf"), device=device)
    filtered = [i for i, r in enumerate(rows) if r.sampling.top_k or r.sampling.top_p < 1.0]
    if filtered:
        picked = torch.tensor(filtered, device=device)
        top_k = [min(rows[i].sampling.top_k, scaled.shape[1]) for i in filtered]
        top_p = [rows[i].sampling.top_p for i in filtered]
        floors[picked] = _floors_of_top(scaled[picked], weights[picked], top_k, top_p)
    min_p = torch.tensor([row.sampling.min_p for row in rows], device=device)
    # The log of 0 is -inf: such a row keeps all.
    return torch.maximum(floors, scaled.amax(dim=-1) + min_p.log())


def _floors_of_top(
    scaled: torch.Tensor, weights: torch.Tensor, top_k: list[int], top_p: list[float]
) -> torch.Tensor:
    """[r] lowest scaled logit within the top k and, of those, within the smallest set of mass `top_p`."""
    vocab, device = scaled.shape[1], scaled.device
    has_top_k = torch.tensor(top_k, device=device) > 0
    share = torch.tensor(top_p, dtype=torch.float64, device=device)
    count = min(max(k or _TOP_P_CANDIDATES for k in top_k), vocab)
    total = weights.sum(dim=-1, dtype=torch.float64)
    values = scaled.topk(count, dim=-1).values
    # A row without top-k keeps every candidate; if they do not reach its mass, all rows are sorted in full.
    reached = (values - values[:, :1]).exp().sum(dim=-1, dtype=torch.float64)
    if count < vocab and bool(((reached < share * total) & ~has_top_k).any()):
        values = scaled.sort(dim=-1, descending=True).values
        count = vocab
    places = torch.arange(count, device=device)
    limit = torch.tensor([k or count for k in top_k], device=device)
    candidates = (values - values[:, :1]).exp().double().masked_fill_(places >= limit[:, None], 0.0)
    mass = candidates.cumsum(dim=-1)
    total = torch.where(has_top_k, mass[:, -1], total)
    # A token stays if the mass before it has not reached top_p yet; the first always stays.
    is_kept = ((mass - candidates) < (share * total)[:, None]) & (places < limit[:, None])
    # With top_p at 1 rounding must not drop the last of the top k.
    kept = torch.where((share == 1.0) & has_top_k, limit, is_kept.sum(dim=-1).clamp_(min=1))
    return values.gather(1, (kept - 1)[:, None])[:, 0]
