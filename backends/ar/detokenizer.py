# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Token ids to text, as a stream: whole characters only, and never a stop string or a piece of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers.decoders import DecodeStream


@dataclass(frozen=True)
class Piece:
    """Text that may be shown now, and whether a stop string ended the text."""

    text: str
    is_stopped: bool


class StopStringFilter:
    """Splits a text stream at the first stop string; holds back what may become one."""

    def __init__(self, stops: tuple[str, ...], *, include_stop: bool = False) -> None:
        self._stops = stops
        self._include_stop = include_stop
        self._held = ""

    def push(self, text: str, *, may_stop: bool = True) -> Piece:
        """Add `text`; returns what can no longer be part of a stop string.

        Text added before the stream may stop is shown whole and is no part of a later stop string.
        """
        if not self._stops or not may_stop:
            return Piece(text, False)
        self._held += text
        starts = [(start, stop) for stop in self._stops if (start := self._held.find(stop)) >= 0]
        if starts:
            # The stop that is complete first ends the text; of those, the one that starts first.
            start, stop = min(starts, key=lambda found: (found[0] + len(found[1]), found[0]))
            shown = self._held[: start + len(stop)] if self._include_stop else self._held[:start]
            self._held = ""
            return Piece(shown, True)
        kept = self._longest_beginning()
        shown = self._held[: len(self._held) - kept]
        self._held = self._held[len(self._held) - kept :]
        return Piece(shown, False)

    def flush(self) -> str:
        """The held text, when the stream ends without a stop string."""
        held, self._held = self._held, ""
        return held

    def _longest_beginning(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = min(len(self._held), max(len(stop) for stop in self._stops) - 1)
        for length in range(longest, 0, -1):
            end = self._held[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0


class Detokenizer:
    """Text of one choice, token by token. Special tokens are not shown."""

    def __init__(self, tokenizer: Any, stops: tuple[str, ...] = (), *, include_stop: bool = False) -> None:
        """`tokenizer` is a `tokenizers.Tokenizer`."""
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)
        self._filter = StopStringFilter(stops, include_stop=include_stop)
        # Ids since the last text: those of an unfinished character.
        self._unfinished: list[int] = []

    def push(self, token_id: int, *, may_stop: bool = True) -> Piece:
        """Text that `token_id` completes. An unfinished character waits for its next token.

        `may_stop` says whether stop strings count yet; once true it stays so.
        """
        text = self._stream.step(self._tokenizer, token_id)
        if not text:
            self._unfinished.append(token_id)
            return Piece("", False)
        self._unfinished.clear()
        return self._filter.push(text, may_stop=may_stop)

    def flush(self) -> str:
        """Text held back, when generation ends; an unfinished character shows as U+FFFD."""
        tail = self._tokenizer.decode(self._unfinished, skip_special_tokens=True)
        self._unfinished.clear()
        last = self._filter.push(tail)
        return last.text if last.is_stopped else last.text + self._filter.flush()
