# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Who gets a free place, and who leaves a full queue: the rule between clients, as functions of counts.

The client with the fewest generations running is served first, among equals the one that has waited longest. So a
client that uses less than its share (the places divided by the clients that want them) is served before any that uses
more, and nobody waits while a place is free. Knows nothing of time or requests.
"""

from __future__ import annotations

from collections.abc import Mapping

Client = int | None  # number of an API key; None: all who come without one


def client_to_serve(heads: Mapping[Client, int], running: Mapping[Client, int]) -> Client:
    """Whose request takes a place that is free. `heads` gives the arrival number of each client's oldest one."""
    return min(heads, key=lambda client: (running.get(client, 0), heads[client]))


def client_to_displace(waiting: Mapping[Client, int], running: Mapping[Client, int], newcomer: Client) -> Client:
    """Whose newest request leaves a full queue so that `newcomer` can wait; the newcomer itself when it asks for no
    less than everybody else.
    """

    def load(client: Client) -> int:
        return waiting.get(client, 0) + running.get(client, 0)

    heaviest = max(waiting, key=load, default=newcomer)
    return heaviest if load(heaviest) > load(newcomer) + 1 else newcomer
