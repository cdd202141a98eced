# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The traffic of the soak: good requests with known answers, cancels, bad input. Records what came of each."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import httpx

REQUEST_TIMEOUT_S = 60.0
QUESTIONS = (
    ("What is the capital of France?", 12),
    ("Name three primary colors.", 24),
    ("Write one sentence about the sea.", 32),
    ("What is 2 + 2?", 16),
    ("Which animal barks?", 16),
    ("Say hello in Spanish.", 20),
)
# Changes to a good body, and the status each must get.
FAULTS: tuple[tuple[dict[str, Any], int], ...] = (
    ({"temperature": 99}, 400),
    ({"max_tokens": -1}, 400),
    ({"messages": []}, 400),
    ({"messages": "hello"}, 400),
    ({"n": 0}, 400),
    ({"stop": [1, 2]}, 400),
    ({"response_format": {"type": "json_schema"}}, 400),
    ({"model": "no-such-model"}, 404),
)


class Outcome(StrEnum):
    """What came of a request."""

    OK = "ok"
    CANCELLED = "cancelled"  # by us, as meant
    REFUSED = "refused"  # bad input, with the status it must get
    WRONG = "wrong"  # another text, status or end than the right one
    BROKEN = "broken"  # no answer


@dataclass(frozen=True)
class Record:
    """One request. Times are seconds since the soak began."""

    began_s: float
    outcome: Outcome
    first_chunk_s: float | None = None
    remark: str = ""


@dataclass
class Traffic:
    """Owns the clients. `run` returns when the time is over and every request has ended."""

    url: str
    model: str
    cancel_share: float
    bad_share: float
    seed: int = 0
    records: list[Record] = field(default_factory=list)
    _expected: dict[str, str] = field(default_factory=dict)

    async def run(self, clients: int, seconds: float) -> None:
        """Learn the right answers one by one, then send from `clients` clients at once."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
        async with httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S, limits=limits) as http:
            for question, _ in QUESTIONS:
                _, text = await self._stream(http, question)
                self._expected[question] = text
            began = time.monotonic()
            await asyncio.gather(*(self._client(http, number, began, began + seconds) for number in range(clients)))

    async def _client(self, http: httpx.AsyncClient, number: int, began: float, until: float) -> None:
        choices = random.Random(self.seed * 1000 + number)
        while time.monotonic() < until:
            draw = choices.random()
            at_s = time.monotonic() - began
            question = choices.choice(QUESTIONS)[0]
            try:
                if draw < self.bad_share:
                    record = await self._send_bad(http, at_s, question, choices)
                elif draw < self.bad_share + self.cancel_share:
                    record = await self._send_and_leave(http, at_s, question, choices.randrange(6))
                else:
                    record = await self._send_good(http, at_s, question)
            except (httpx.HTTPError, TimeoutError) as error:
                record = Record(at_s, Outcome.BROKEN, remark=type(error).__name__)
            self.records.append(record)

    async def _send_good(self, http: httpx.AsyncClient, at_s: float, question: str) -> Record:
        first_chunk_s, text = await self._stream(http, question)
        if text != self._expected[question]:
            return Record(at_s, Outcome.WRONG, first_chunk_s, f"{question!r} got {text[:200]!r}")
        return Record(at_s, Outcome.OK, first_chunk_s)

    async def _send_and_leave(self, http: httpx.AsyncClient, at_s: float, question: str, events: int) -> Record:
        """Close the connection after some events; 0 closes before the answer has begun."""
        body = self._body(question)
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            if events == 0:
                request = asyncio.create_task(http.post(f"{self.url}/v1/chat/completions", json=body))
                await asyncio.sleep(0.02)
                request.cancel()
                await asyncio.gather(request, return_exceptions=True)
                return Record(at_s, Outcome.CANCELLED)
            async with http.stream("POST", f"{self.url}/v1/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    events -= line.startswith("data: ")
                    if events <= 0:
                        break
        return Record(at_s, Outcome.CANCELLED)

    async def _send_bad(self, http: httpx.AsyncClient, at_s: float, question: str, choices: random.Random) -> Record:
        change, status = choices.choice(FAULTS)
        response = await http.post(f"{self.url}/v1/chat/completions", json={**self._body(question), **change})
        if response.status_code != status:
            return Record(at_s, Outcome.WRONG, remark=f"{change} got {response.status_code}")
        return Record(at_s, Outcome.REFUSED)

    async def _stream(self, http: httpx.AsyncClient, question: str) -> tuple[float, str]:
        """Seconds to the first text, and the whole text."""
        began = time.monotonic()
        first_s, text, is_done = None, "", False
        url = f"{self.url}/v1/chat/completions"
        async with http.stream("POST", url, json=self._body(question)) as response:
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    is_done = True
                elif line.startswith("data: {"):
                    event = json.loads(line.removeprefix("data: "))
                    if "error" in event:
                        return time.monotonic() - began, f"<error event {event['error'].get('code')}>"
                    piece = event["choices"][0]["delta"].get("content") if event["choices"] else None
                    if piece:
                        first_s = first_s or time.monotonic() - began
                        text += piece
        if response.status_code != 200 or not is_done:
            text = f"<status {response.status_code}, ended: {is_done}>"
        return first_s or time.monotonic() - began, text

    def _body(self, question: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": dict(QUESTIONS)[question],
            "temperature": 0,
            "stream": True,
        }
