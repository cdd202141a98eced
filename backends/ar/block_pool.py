# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Owner of the KV blocks: who holds which, which hold a known prefix, which is given away next. Imports no torch.

    state     references   content                              leaves it by
    held      ≥ 1          being written, or full and shared    release of the last holder
    cached    0            a full block under its key           share (held again) or take (content lost)
    free      0            nothing of use                       take

A key identifies a block's tokens *and* all tokens before it, so equal keys mean equal KV.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_HELD = np.iinfo(np.int64).max
_WISHED = _HELD // 2


def block_key(parent: bytes, token_ids: Sequence[int]) -> bytes:
    """Key of a full block whose predecessor has key `parent` (the cache's salt for the first block)."""
    return hashlib.blake2b(array("q", token_ids).tobytes(), key=parent[:64], digest_size=16).digest()


class BlockPool:
    """Counts references of `num_blocks` blocks, remembers full ones by key, and evicts the least recently used."""

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 1:
            raise ValueError("a pool needs at least one block")
        self.num_blocks = num_blocks
        self._references = [0] * num_blocks
        self._key_of: dict[int, bytes] = {}
        self._block_of: dict[bytes, int] = {}
        # Dicts, because they keep order and remove in O(1). Cached: least recently used first.
        self._free: dict[int, None] = dict.fromkeys(range(num_blocks))
        self._cached: dict[int, None] = {}
        # For `place`: when a cached block was last used; 0 for a free one, _HELD for a held one.
        self._last_use = np.zeros(num_blocks, dtype=np.int64)
        self._clock = 0

    @property
    def num_free(self) -> int:
        """Blocks that can be taken, cached ones included."""
        return len(self._free) + len(self._cached)

    @property
    def num_held(self) -> int:
        """Blocks some row holds."""
        return self.num_blocks - self.num_free

    def take(self, count: int, after: int | None = None) -> list[int]:
        """`count` blocks, held once. The block following `after`, and so on, is preferred where it is free."""
        if count > self.num_free:
            raise ValueError(f"{count} blocks wanted, {self.num_free} free")
        taken: list[int] = []
        for _ in range(count):
            block = self._next(after)
            self._hold_first(block)
            key = self._key_of.pop(block, None)
            if key is not None:
                del self._block_of[key]
            taken.append(block)
            after = block
        return taken

    def place(self, count: int, wished: Sequence[range]) -> int | None:
        """Block before the best run of `count` blocks: `take(n, after=…)` then yields neighbours.

        The best run is the one whose content was used longest ago, outside of what other rows hope to grow into
        (`wished`) where possible. None where no run is long enough. Neighbouring blocks let CPU attention read a
        row's KV without a copy; nothing else depends on them.
        """
        if count > self.num_blocks:
            return None
        cost = self._last_use.copy()
        for wish in wished:
            region = cost[wish.start : wish.stop]
            np.maximum(region, _WISHED, out=region)
        newest = sliding_window_view(cost, count).max(axis=1)
        start = int(newest.argmin())
        return start - 1 if newest[start] < _HELD else None

    def share(self, blocks: Sequence[int]) -> None:
        """One more holder for each of `blocks`, which are held or cached."""
        for block in blocks:
            if self._references[block]:
                self._references[block] += 1
            else:
                self._hold_first(block)

    def release(self, blocks: Sequence[int]) -> None:
        """One holder less. Later blocks of a row are given away before earlier ones: prefixes live longest."""
        self._clock += 1
        for block in reversed(blocks):
            if self._references[block] < 1:
                raise ValueError(f"block {block} is released but not held")
            self._references[block] -= 1
            if self._references[block]:
                continue
            if block in self._key_of:
                self._cached[block] = None
                self._last_use[block] = self._clock
            else:
                self._free[block] = None
                self._last_use[block] = 0

    def remember(self, block: int, key: bytes) -> None:
        """`block`, held and full, contains what `key` stands for. The first block of a key keeps it."""
        if key not in self._block_of and block not in self._key_of:
            self._block_of[key] = block
            self._key_of[block] = key

    def find(self, keys: Sequence[bytes]) -> list[int]:
        """Blocks of the longest known prefix of `keys`."""
        found: list[int] = []
        for key in keys:
            block = self._block_of.get(key)
            if block is None:
                break
            found.append(block)
        return found

    def is_unheld(self, block: int) -> bool:
        """Whether `block` exists and nobody holds it."""
        return block < self.num_blocks and not self._references[block]

    def num_unheld(self, blocks: Sequence[int]) -> int:
        """How many of `blocks` nobody holds: sharing them lowers `num_free` by that."""
        return sum(1 for block in blocks if not self._references[block])

    def _next(self, after: int | None) -> int:
        if after is not None and (after + 1 in self._free or after + 1 in self._cached):
            return after + 1
        return next(iter(self._free or self._cached))

    def _hold_first(self, block: int) -> None:
        if block in self._free:
            del self._free[block]
        else:
            del self._cached[block]
        self._references[block] = 1
        self._last_use[block] = _HELD
