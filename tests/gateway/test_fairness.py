# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The rule between clients, under any order of arrivals and endings."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import given, settings
from hypothesis import strategies as st

from tritone.gateway.fairness import Client, client_to_displace, client_to_serve

CLIENTS = st.sampled_from([None, 0, 1, 2, 3])
EVENTS = st.lists(st.tuples(st.sampled_from(["arrive", "end"]), CLIENTS, st.integers(0, 9)), max_size=120)


class Simulation:
    """A server with `max_running` places and room for `max_waiting`, ruled by the two functions."""

    def __init__(self, max_running: int, max_waiting: int) -> None:
        self.max_running = max_running
        self.max_waiting = max_waiting
        self.running: Counter[Client] = Counter()
        self.queues: dict[Client, deque[int]] = {}
        self.num_arrived = 0
        self.served: list[int] = []

    @property
    def waiting(self) -> dict[Client, int]:
        return {client: len(queue) for client, queue in self.queues.items() if queue}

    def arrive(self, client: Client) -> None:
        self.num_arrived += 1
        if sum(self.waiting.values()) >= self.max_waiting and self.running.total() >= self.max_running:
            leaving = client_to_displace(self.waiting, self.running, client)
            if leaving == client:
                return
            self.check_displaced(leaving, client)
            self.queues[leaving].pop()
        self.queues.setdefault(client, deque()).append(self.num_arrived)
        self.serve()

    def end(self, client: Client) -> None:
        if self.running[client]:
            self.running[client] -= 1
            self.serve()

    def serve(self) -> None:
        while self.waiting and self.running.total() < self.max_running:
            heads = {client: self.queues[client][0] for client in self.waiting}
            client = client_to_serve(heads, self.running)
            self.check_served(client)
            self.served.append(self.queues[client].popleft())
            self.running[client] += 1

    def check_served(self, client: Client) -> None:
        wanting = set(self.waiting) | {other for other, number in self.running.items() if number}
        share = self.max_running / len(wanting)
        if self.running[client] >= share:
            assert all(self.running[other] >= share for other in self.waiting), "one below its share was passed over"
        equals = [other for other in self.waiting if self.running[other] == self.running[client]]
        assert self.queues[client][0] == min(self.queues[other][0] for other in equals)

    def check_displaced(self, leaving: Client, newcomer: Client) -> None:
        load = Counter(self.waiting) + self.running
        assert load[leaving] == max(load[other] for other in self.waiting)
        assert load[leaving] - 1 >= load[newcomer] + 1, "a client was made poorer than the newcomer"


@settings(max_examples=300, deadline=None)
@given(EVENTS, st.integers(1, 6), st.integers(0, 6))
def test_nobody_below_its_share_waits_behind_one_above(
    events: list[tuple[str, Client, int]], max_running: int, max_waiting: int
) -> None:
    simulation = Simulation(max_running, max_waiting)
    for kind, client, _ in events:
        simulation.arrive(client) if kind == "arrive" else simulation.end(client)
        assert simulation.running.total() <= max_running
        assert sum(simulation.waiting.values()) <= max_waiting
        assert not simulation.waiting or simulation.running.total() == max_running, "a place is free and one waits"
    assert len(set(simulation.served)) == len(simulation.served)


@given(st.integers(1, 50), st.integers(1, 50))
def test_a_flood_of_one_client_cannot_keep_another_out(num_running: int, num_waiting: int) -> None:
    running: dict[Client, int] = {0: num_running}
    assert client_to_displace({0: num_waiting}, running, 1) == (0 if num_running + num_waiting > 1 else 1)
    assert client_to_serve({0: 1, 1: 1_000_000}, running) == 1


def test_equals_are_served_in_the_order_of_their_arrival() -> None:
    assert client_to_serve({0: 7, 1: 3, None: 5}, {}) == 1
    assert client_to_displace({0: 1, 1: 1}, {}, 2) == 2
    assert client_to_displace({}, {}, 2) == 2
