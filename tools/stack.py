# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A whole Tritone on this machine: Triton with its models, the gateway in front of it, a supervisor for both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tritone.tools.gateway_process import GatewayProcess, gateway_settings
from tritone.tools.launch import READY_TIMEOUT_S, choose_ports, start_triton
from tritone.tools.ports import LOOPBACK, free_ports, require_free
from tritone.tools.problems import LaunchError
from tritone.tools.selftest.check import MODEL as SELFTEST_MODEL
from tritone.tools.supervisor import Supervisor
from tritone.tools.supervisor_plan import MAX_TRIES, RecoveryPlan
from tritone.tools.supervisor_server import SupervisedServer
from tritone.tools.triton_options import Ports
from tritone.tools.triton_server import Progress, TritonServer

WATCH_S = 0.5
# A server that has not answered for this long hangs.
SERVER_SILENCE_S = 15.0
SERVER = "the Triton server"

Say = Callable[[str], None]


class Stack:
    """Owns a server and a gateway: both ready, or neither there. A context manager: leaving it stops both.

    Models that die are loaded again, and a server that dies is started again, as long as somebody calls `watch`. The
    gateway stays the same.
    """

    def __init__(self, server: TritonServer, gateway: GatewayProcess, say: Say = print) -> None:
        self.server = server
        self.gateway = gateway
        self._say = say
        self._server_plan = RecoveryPlan()
        self._supervisor = self._new_supervisor()

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
        say: Say = print,
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
        return cls(server, gateway, say)

    def watch(self) -> None:
        """Return never: raise `LaunchError` when the gateway ends, or the server cannot be kept running."""
        while True:
            self.step()
            time.sleep(WATCH_S)

    def step(self) -> None:
        """One round of `watch`: see that all is well, and put right what can be."""
        if self.gateway.has_ended():
            raise LaunchError("the gateway ended by itself", remedy=f"see its log: {self.gateway.log_path}")
        hangs = not self.server.has_ended() and self._supervisor.silence_s > SERVER_SILENCE_S
        sick = {SERVER} if hangs or self.server.has_ended() else set[str]()
        decision = self._server_plan.take(sick, {SERVER} - sick, time.monotonic())
        if decision.reload:
            self._restart_server("does not answer" if hangs else "ended by itself")
        elif decision.give_up:
            raise LaunchError(
                f"{SERVER} was started again {MAX_TRIES} times and does not stay",
                remedy=f"see its log: {self.server.log_path}",
            )
        elif not sick:
            self._supervisor.step()

    def _new_supervisor(self) -> Supervisor:
        return Supervisor(SupervisedServer(self.server.http_url, self.server.metrics_url), self._say)

    def _restart_server(self, what: str) -> None:
        tries = self._server_plan.num_tries(SERVER)
        self._say(f"{SERVER} {what}: starting it again, try {tries} of {MAX_TRIES} (log: {self.server.log_path})")
        began_s = time.monotonic()
        self.server.kill()
        self.server.stop()
        self.server = self.server.successor(without=SELFTEST_MODEL)
        try:
            self.server.start()
            self.server.wait_until_ready(READY_TIMEOUT_S)
        except LaunchError as error:
            self._say(f"{SERVER} could not be started again: {error.message}")
            self.server.stop()
            self._server_plan.ended(SERVER, is_loaded=False, now_s=time.monotonic())
            return
        self._server_plan.ended(SERVER, is_loaded=True, now_s=time.monotonic())
        self._supervisor = self._new_supervisor()
        self._say(f"{SERVER} serves again after {time.monotonic() - began_s:.1f} s")

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
