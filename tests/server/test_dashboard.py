# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard asks for metrics that the running server shows."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import httpx
import openai

from tritone.tools.stack import Stack

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana" / "tritone.json"
METRIC = re.compile(r"\b(?:tritone|process)_[a-z_]+\b")
FLUSH_S = 15.0


def test_every_metric_of_the_dashboard_is_shown(stack: Stack, client: openai.OpenAI) -> None:
    client.completions.create(model="tiny_chat", prompt="hello", max_tokens=4)
    client.completions.create(model="smollm2_chat", prompt="hello", max_tokens=2, extra_body={"ignore_eos": True})
    refused = httpx.post(f"{stack.gateway.url}/v1/completions", json={"model": "tiny_chat", "temperature": 99})
    assert refused.status_code == 400
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {name for panel in panels for target in panel.get("targets", ()) for name in METRIC.findall(target["expr"])}
    assert len(asked) > 20
    deadline = time.monotonic() + FLUSH_S
    while missing := asked - _shown(stack):
        assert time.monotonic() < deadline, f"the server shows no {sorted(missing)}"
        time.sleep(0.5)


def _shown(stack: Stack) -> set[str]:
    page = httpx.get(f"{stack.gateway.url}/metrics").text
    return {line.split("{")[0].split(" ")[0] for line in page.splitlines() if line and not line.startswith("#")}
