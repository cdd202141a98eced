# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Grammar-guided decoding with llguidance: which tokens may come next. Knows nothing of logits."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from tritone.backends.ar.request import ResponseFormat
from tritone.errors import InvalidRequest

logger = logging.getLogger(__name__)

MAX_SCHEMA_CHARS = 256 * 1024
# Between two parts of a JSON text: at most a line break and an indentation. Where any whitespace is allowed, a model
# may write it until its tokens run out. An override, so that a schema's own `x-guidance` cannot lift it.
_OVERRIDES: Any = {"whitespace_pattern": r"(\n {0,24}| ?)"}


class Guide:
    """The state of one row's grammar."""

    def __init__(self, matcher: Any, vocab_size: int) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size

    def fork(self) -> Guide:
        """A copy in the same state, for another choice."""
        return Guide(self._matcher.deep_copy(), self._vocab_size)

    def allowed(self) -> npt.NDArray[np.bool_]:
        """[V] bool: tokens that may come next."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        if self._matcher.is_error():
            raise self._lost()
        return np.unpackbits(bits, count=self._vocab_size, bitorder="little").view(np.bool_)

    def accept(self, token_id: int) -> None:
        """Advance by a drawn token."""
        if not self._matcher.is_stopped() and not self._matcher.consume_token(token_id):
            raise self._lost()

    @property
    def is_complete(self) -> bool:
        """Nothing may follow."""
        return bool(self._matcher.is_stopped())

    def _lost(self) -> InvalidRequest:
        # Tokens are drawn from the allowed ones, so what ends here are the grammar's own limits of size.
        logger.error("a grammar could not be followed: %s", self._matcher.get_error())
        return InvalidRequest("the schema is too large or too deep to be followed", field="response_format")


class GuideFactory:
    """Compiles response formats for one tokenizer. The tokenizer's table is built on first use (about a second)."""

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: tuple[int, ...]) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._eos_token_ids = eos_token_ids
        self._table: Any = None
        self._lock = threading.Lock()

    def compile(self, response_format: ResponseFormat) -> Guide | None:
        """A guide at the start of its grammar, or None for plain text."""
        if response_format.type == "text":
            return None
        from llguidance import LLMatcher

        schema: Any = {"type": "object"} if response_format.schema is None else dict(response_format.schema)
        try:
            text = json.dumps(schema)
        except (ValueError, RecursionError):
            raise InvalidRequest("the schema cannot be read", field="response_format") from None
        if len(text) > MAX_SCHEMA_CHARS:
            raise InvalidRequest(f"the schema is longer than {MAX_SCHEMA_CHARS} characters", field="response_format")
        try:
            grammar = LLMatcher.grammar_from_json_schema(text, overrides=_OVERRIDES)
            matcher = LLMatcher(self._llguidance_table(), grammar, log_level=0)
            # Some schemas show only at their first token that they are too large or never end.
            matcher.compute_bitmask()
            error = matcher.get_error()
        except ValueError as raised:
            error = str(raised)
        if error:
            logger.info("a schema was refused: %s", error)
            raise InvalidRequest(
                "the schema is not valid or uses features that guided decoding lacks", field="response_format"
            )
        return Guide(matcher, self._vocab_size)

    def _llguidance_table(self) -> Any:
        from llguidance.hf import from_tokenizer

        with self._lock:
            if self._table is None:
                eos = list(self._eos_token_ids) or None
                self._table = from_tokenizer(self._tokenizer, n_vocab=self._vocab_size, eos_token=eos)
        return self._table
