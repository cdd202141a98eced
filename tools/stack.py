# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A whole Tritone on this machine: Triton with its models, the gateway in front of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tritone.tools.gateway_process import GatewayProcess, gateway_settings
from tritone.tools.launch import choose_ports, start_triton
from tritone.tools.ports import LOOPBACK, free_ports, require_free
from tritone.tools.problems import LaunchError
from tritone.tools.triton_options import Ports
from tritone.tools.triton_server import Progress, TritonServer

WATCH_S = 0.5


class Stack:
    """Owns a server and a gateway: both ready, or neither there. A context manager: leaving it stops both."""

    def __init__(self, server: TritonServer, gateway: GatewayProcess) -> None:
        self.server = server
        self.gateway = gateway

    @classmethod
    def start(
        cls,
        repository: Path,
        run_folder: Path,
        *,
        models: Sequence[str] = (),
        host: str = LOOPBACK,
        port: int | None = None,
        triton_ports: Ports | None = None,
        api_keys: tuple[str, ...] = (),
        triton_extra: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Stack:
        """Start both and return when they can serve. Without `port`, or with 0, the gateway takes a free one."""
        # Before the models load, which takes longer than anyone wants to wait for these answers.
        if port:
            require_free(port, "the gateway", host)
        settings = gateway_settings(host, port or free_ports(1, host)[0], api_keys)
        server = start_triton(
            repository,
            run_folder,
            models=models,
            ports=triton_ports or choose_ports(),
            extra=triton_extra,
            progress=progress,
        )
        gateway = GatewayProcess(server, settings)
        try:
            if progress is not None:
                progress("starting the gateway …")
            gateway.start()
            gateway.wait_until_ready()
        except BaseException:
            gateway.stop()
            server.stop()
            raise
        return cls(server, gateway)

    def watch(self) -> None:
        """Return never: raise `LaunchError` when one of the two ends by itself."""
        while True:
            for part, name, log in (
                (self.server, "the Triton server", self.server.log_path),
                (self.gateway, "the gateway", self.gateway.log_path),
            ):
                if part.has_ended():
                    raise LaunchError(f"{name} ended by itself", remedy=f"see its log: {log}")
            time.sleep(WATCH_S)

    def stop(self) -> None:
        """Stop the gateway, which lets running answers end, then the server."""
        try:
            self.gateway.stop()
        finally:
            self.server.stop()

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
