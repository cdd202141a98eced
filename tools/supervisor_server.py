# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a supervisor asks of a running Triton server, over its HTTP and metrics ports."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from tritone.gateway.stage_health import fetch_metrics

ASK_TIMEOUT_S = 2.0
UNLOAD_TIMEOUT_S = 15.0
LOAD_TIMEOUT_S = 600.0
MAX_REASON_CHARS = 300

_FAULTS = (OSError, ValueError, http.client.HTTPException)


class CannotLoad(Exception):
    """The server could not load a model; the text is its first line about it."""


class DoesNotAnswer(Exception):
    """The server did not answer a load within `LOAD_TIMEOUT_S`, or broke off."""


class SupervisedServer:
    """A client of one server. Methods block; they may be used from several threads."""

    def __init__(self, http_url: str, metrics_url: str) -> None:
        self.http_url = http_url.rstrip("/")
        self._metrics_url = metrics_url
        # No proxies: the server is next door.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def metrics_page(self) -> str | None:
        """The metrics page; none when it cannot be read."""
        page = fetch_metrics(self._metrics_url)
        return None if page is None else page.decode("utf-8", "replace")

    def is_live(self) -> bool:
        """Whether the server answers at all."""
        try:
            with self._opener.open(f"{self.http_url}/v2/health/live", timeout=ASK_TIMEOUT_S):
                return True
        except urllib.error.HTTPError:
            return True
        except _FAULTS:
            return False

    def ready_models(self) -> frozenset[str] | None:
        """Models that the server calls ready; none when it does not answer."""
        try:
            index = self._ask("/v2/repository/index", ASK_TIMEOUT_S)
        except _FAULTS:
            return None
        return frozenset(entry["name"] for entry in index if entry.get("state") == "READY")

    def unload(self, model: str) -> None:
        """Ask for a model to be unloaded. Whether that ends is not known: one with requests of a dead process never
        does, and can be loaded again all the same."""
        try:
            self._ask(f"/v2/repository/models/{quote(model)}/unload", UNLOAD_TIMEOUT_S)
        except _FAULTS:
            return

    def load(self, model: str) -> None:
        """Load a model. Raises `CannotLoad` or `DoesNotAnswer`."""
        try:
            self._ask(f"/v2/repository/models/{quote(model)}/load", LOAD_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            raise CannotLoad(_reason(error)) from None
        except _FAULTS:
            raise DoesNotAnswer from None

    def _ask(self, path: str, timeout_s: float) -> Any:
        request = urllib.request.Request(self.http_url + path, b"{}")
        with self._opener.open(request, timeout=timeout_s) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def _reason(error: urllib.error.HTTPError) -> str:
    with error:
        try:
            text = str(json.loads(error.read())["error"])
        except (*_FAULTS, KeyError, TypeError):
            return f"HTTP status {error.code}"
    # A Python model's traceback follows; it is in the server's log.
    return " ".join(text.partition("\n\nAt:")[0].split())[:MAX_REASON_CHARS]
