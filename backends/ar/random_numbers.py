# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Random numbers that belong to a request: a pure function of seed, choice and token position.

No generator has a state, so neither the batch, nor a neighbour's cancel, nor a recompute can shift a number.
"""

from __future__ import annotations

import hashlib
import secrets
import struct


def fresh_seed() -> int:
    """A seed for a request that brought none."""
    return secrets.randbits(63)


def uniform(seed: int, choice_index: int, position: int) -> float:
    """A number in [0, 1) with 53 random bits. `seed` is a signed 64-bit integer."""
    counter = struct.pack("<qII", seed, choice_index, position)
    bits = int.from_bytes(hashlib.blake2b(counter, digest_size=8).digest(), "little")
    return (bits >> 11) * 2.0**-53
