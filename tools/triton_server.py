# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""One running Triton server: start it, wait until it can serve, stop it and leave nothing behind.

Knows processes and readiness; what is served is in `ServerOptions`.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tritone.tools.guarded_process import GuardedProcess
from tritone.tools.problems import LaunchError
from tritone.tools.server_log import failure_lines, has_load_failure
from tritone.tools.triton_layout import TritonLayout, server_environment
from tritone.tools.triton_options import EXIT_TIMEOUT_S, ServerOptions, command_line

# The server's own drain, its models' end, and a little.
STOP_GRACE_S = EXIT_TIMEOUT_S + 8.0
LOG_NAME = "tritonserver.log"

Progress = Callable[[str], None]


class TritonServer:
    """Owns the server's process. A context manager: leaving it stops the server."""

    def __init__(self, layout: TritonLayout, options: ServerOptions, run_folder: Path) -> None:
        self.options = options
        self.run_folder = run_folder
        self.log_path = run_folder / LOG_NAME
        self._layout = layout
        # An earlier server of the same run may have left lines.
        self._log_began_bytes = 0
        self._process = GuardedProcess(self.log_path, STOP_GRACE_S, options.region_prefix)

    @property
    def http_url(self) -> str:
        """Base URL of Triton's HTTP endpoint."""
        return f"http://{self.options.host}:{self.options.ports.http}"

    @property
    def grpc_address(self) -> str:
        """`host:port` of Triton's gRPC endpoint."""
        return f"{self.options.host}:{self.options.ports.grpc}"

    @property
    def metrics_url(self) -> str:
        """URL of Triton's metrics."""
        return f"http://{self.options.host}:{self.options.ports.metrics}/metrics"

    def successor(self, without: str) -> TritonServer:
        """A server that is to take the place of this one, at its ports, with all its models but `without`."""
        kept = tuple(model for model in self.options.load_models if model != without)
        return TritonServer(self._layout, replace(self.options, load_models=kept), self.run_folder)

    def start(self) -> None:
        """Start the process; returns at once."""
        self._log_began_bytes = self.log_path.stat().st_size if self.log_path.exists() else 0
        # The run folder is neutral: the stub puts its working directory first on the models' import path.
        self._process.start(
            command_line(self._layout, self.options), server_environment(self._layout), self.run_folder
        )

    def has_ended(self) -> bool:
        """Whether the server is no longer running."""
        return self._process.has_ended()

    def is_ready(self) -> bool:
        """Whether the server says that it and every loaded model can serve."""
        try:
            with urllib.request.urlopen(f"{self.http_url}/v2/health/ready", timeout=2.0) as response:
                return bool(response.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def wait_until_ready(self, timeout_s: float, progress: Progress | None = None) -> None:
        """Return when the server can serve. Raises `LaunchError` with the log's telling lines when it cannot."""
        began = time.monotonic()
        while not self.is_ready():
            elapsed_s = time.monotonic() - began
            if has_load_failure(self.log_path, self._log_began_bytes):
                raise self._failed("a model failed to load")
            if self.has_ended():
                raise self._failed("the Triton server ended while it was starting")
            if elapsed_s > timeout_s:
                raise self._failed(f"the Triton server was not ready within {timeout_s:.0f} s")
            if progress is not None:
                progress(f"starting Triton and loading models … {elapsed_s:.0f} s")
            time.sleep(0.1)

    def _failed(self, message: str) -> LaunchError:
        details = "\n".join(failure_lines(self.log_path)) or None
        return LaunchError(message, details=details, remedy=f"see the whole log: {self.log_path}")

    def kill(self) -> None:
        """End a server that hangs; `stop` then cleans up."""
        self._process.kill()

    def stop(self) -> None:
        """Stop the server and wait until nothing of it is left. Does nothing when it was not started."""
        self._process.stop()

    def __enter__(self) -> TritonServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
