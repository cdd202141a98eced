# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Text and bytes of single tokens, for log-probabilities. A token may be a part of a character: its bytes say which."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tritone.backends.ar.events import TokenLogprobs, TopLogprob
from tritone.backends.ar.sampler import Draw

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@lru_cache(maxsize=1)
def _byte_alphabet() -> dict[str, int]:
    """The character a byte-level vocabulary writes for each byte: itself where it prints, else one from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in printable]
    return alphabet | {chr(256 + index): byte for index, byte in enumerate(others)}


class TokenTexts:
    """Looks tokens up in a `tokenizers.Tokenizer`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._is_byte_level = "ByteLevel" in repr(tokenizer.decoder)
        self._special = set(tokenizer.get_added_tokens_decoder())

    def token_bytes(self, token_id: int) -> bytes:
        """UTF-8 bytes the token stands for."""
        token = self._tokenizer.id_to_token(token_id) or ""
        if token_id in self._special:
            return str(token).encode()
        if self._is_byte_level:
            alphabet = _byte_alphabet()
            return bytes(alphabet[char] for char in token if char in alphabet)
        match = _BYTE_TOKEN.fullmatch(token)
        if match:
            return bytes([int(match[1], 16)])
        return str(token).replace("\u2581", " ").encode()

    def logprobs(self, draw: Draw) -> TokenLogprobs:
        """The event form of a draw that has log-probabilities."""
        top = tuple(TopLogprob(*self._text_and_id(i), logprob, self._bytes(i)) for i, logprob in draw.top)
        token_id = draw.token_id
        logprob = draw.logprob if draw.logprob is not None else 0.0
        return TokenLogprobs(*self._text_and_id(token_id), logprob, self._bytes(token_id), top)

    def _text_and_id(self, token_id: int) -> tuple[str, int]:
        return self.token_bytes(token_id).decode("utf-8", errors="replace"), token_id

    def _bytes(self, token_id: int) -> tuple[int, ...]:
        return tuple(self.token_bytes(token_id))
