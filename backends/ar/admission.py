# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checks a request against the checkpoint and makes its rows. Runs on the submitting thread, shares no state."""

from __future__ import annotations

from tritone.backends.ar.detokenizer import Detokenizer
from tritone.backends.ar.guidance import Guide, GuideFactory
from tritone.backends.ar.random_numbers import fresh_seed
from tritone.backends.ar.request import MAX_CHOICES, GenerationRequest
from tritone.backends.ar.row import Row
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.models.checkpoint import Checkpoint
from tritone.errors import InvalidRequest


class Admission:
    """Knows vocabulary, context and end tokens of one engine."""

    def __init__(self, checkpoint: Checkpoint, settings: EngineSettings, context_tokens: int) -> None:
        self._vocab_size = checkpoint.decoder_config.vocab_size
        self._context_tokens = context_tokens
        self._max_rows = settings.max_rows
        self._shares_prefixes = settings.prefix_caching
        self._eos_token_ids = checkpoint.eos_token_ids
        self._tokenizer = checkpoint.tokenizer.backend_tokenizer
        self._guides = GuideFactory(checkpoint.tokenizer, self._vocab_size, self._eos_token_ids)

    def check(self, request: GenerationRequest) -> Guide | None:
        """Raise `InvalidRequest` for what this engine cannot run; compile the grammar."""
        prompt, sampling = request.prompt_token_ids, request.sampling
        if not prompt:
            raise InvalidRequest("the prompt is empty", field="prompt")
        self._check_ids("input_ids", prompt)
        self._check_ids("logit_bias", tuple(sampling.logit_bias))
        self._check_ids("stop_token_ids", sampling.stop_token_ids)
        if not 1 <= request.n <= MAX_CHOICES:
            raise InvalidRequest(f"n is {request.n}; allowed: 1 to {MAX_CHOICES}", field="n")
        room = self._context_tokens - len(prompt)
        if room < 1:
            raise InvalidRequest(
                f"the prompt has {len(prompt)} tokens; the context of {self._context_tokens} leaves no room to answer",
                field="messages",
            )
        for key in ("max_tokens", "min_tokens"):
            value = getattr(sampling, key)
            if value is not None and value > room:
                raise InvalidRequest(
                    f"{key} is {value}; {len(prompt)} prompt tokens leave room for {room} in the context of "
                    f"{self._context_tokens}",
                    field=key,
                )
        return self._guides.compile(sampling.response_format)

    def rows(self, request_id: int, request: GenerationRequest, guide: Guide | None) -> list[Row]:
        """One row per choice."""
        sampling, num_prompt = request.sampling, len(request.prompt_token_ids)
        max_total = self._context_tokens if sampling.max_tokens is None else num_prompt + sampling.max_tokens
        stop_ids = frozenset(sampling.stop_token_ids)
        if not sampling.ignore_eos:
            stop_ids |= frozenset(self._eos_token_ids)
        seed = fresh_seed() if sampling.seed is None else sampling.seed
        # With prefix caching off, keys differ per request, so only its own choices share.
        salt = b"shared" if self._shares_prefixes else b"request %d" % request_id
        return [
            Row(
                request_id=request_id,
                choice_index=index,
                seed=seed,
                sampling=sampling,
                stop_ids=stop_ids,
                token_ids=list(request.prompt_token_ids),
                num_prompt=num_prompt,
                max_total=max_total,
                salt=salt,
                detokenizer=Detokenizer(
                    self._tokenizer, sampling.stop, include_stop=sampling.include_stop_str_in_output
                ),
                guide=None if guide is None else guide.fork(),
            )
            for index in range(request.n)
        ]

    def _check_ids(self, field: str, ids: tuple[int, ...]) -> None:
        for token_id in ids:
            if not 0 <= token_id < self._vocab_size:
                raise InvalidRequest(
                    f"{field} has token id {token_id}; the vocabulary ends at {self._vocab_size - 1}", field=field
                )
