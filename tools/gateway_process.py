# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway as a child process in front of a running Triton server."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request

from tritone.gateway.settings import GatewaySettings, SettingsError
from tritone.tools.guarded_process import GuardedProcess
from tritone.tools.ports import LOOPBACK
from tritone.tools.problems import LaunchError
from tritone.tools.triton_server import TritonServer

LOG_NAME = "gateway.log"
# On top of the gateway's own drain of running answers.
STOP_GRACE_S = 5.0
READY_TIMEOUT_S = 60.0


def configured_keys() -> tuple[str, ...]:
    """The keys that the environment configures for a gateway."""
    return tuple(key.strip() for key in os.environ.get("TRITONE_API_KEYS", "").split(",") if key.strip())


def gateway_settings(host: str, port: int, api_keys: tuple[str, ...] = ()) -> GatewaySettings:
    """What the gateway will read: the environment with what was typed over it. Raises `LaunchError` for a bad value."""
    try:
        return GatewaySettings.from_environment({**os.environ, **_typed(host, port, api_keys)})
    except SettingsError as error:
        raise LaunchError(f"the gateway cannot be configured: {error}") from None


def _typed(host: str, port: int, api_keys: tuple[str, ...]) -> dict[str, str]:
    keys = {"TRITONE_API_KEYS": ",".join(api_keys)} if api_keys else {}
    return {"TRITONE_HOST": host, "TRITONE_PORT": str(port), **keys}


class GatewayProcess:
    """Owns the gateway's process. Everything it is told travels in TRITONE_* variables, keys included."""

    def __init__(self, server: TritonServer, settings: GatewaySettings) -> None:
        self.host = settings.host
        self.port = settings.port
        self.log_path = server.run_folder / LOG_NAME
        self._server = server
        self._api_keys = settings.api_keys
        self._process = GuardedProcess(self.log_path, settings.drain_timeout_s + STOP_GRACE_S)

    @property
    def wants_key(self) -> bool:
        """Whether clients have to send a key."""
        return bool(self._api_keys)

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach it."""
        return self.host not in (LOOPBACK, "localhost", "::1")

    @property
    def url(self) -> str:
        """Base URL for somebody on this machine."""
        host = LOOPBACK if self.host in ("0.0.0.0", "") else "[::1]" if self.host == "::" else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Start the process; returns at once."""
        environment = {
            **os.environ,
            **_typed(self.host, self.port, self._api_keys),
            "TRITONE_TRITON_GRPC": self._server.grpc_address,
            "TRITONE_TRITON_METRICS": self._server.metrics_url,
        }
        self._process.start([sys.executable, "-m", "tritone.gateway"], environment, self._server.run_folder)

    def has_ended(self) -> bool:
        """Whether the gateway is no longer running."""
        return self._process.has_ended()

    def is_ready(self) -> bool:
        """Whether the gateway answers and reaches its models."""
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=2.0) as response:
                return bool(response.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def wait_until_ready(self) -> None:
        """Return when the gateway serves. Raises `LaunchError` with the end of its log when it does not."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self.is_ready():
            if self.has_ended() or time.monotonic() > deadline:
                what = "ended while it was starting" if self.has_ended() else "was not ready in time"
                tail = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
                raise LaunchError(
                    f"the gateway {what}", details="\n".join(tail), remedy=f"see the whole log: {self.log_path}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """Let running answers end, then stop. Does nothing when it was not started."""
        self._process.stop()
