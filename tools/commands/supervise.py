# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone supervise`: load models again whose process died or stalled, beside a server that something else started."""

from __future__ import annotations

from typing import Annotated

import typer


def supervise(
    http: Annotated[str, typer.Option(help="Triton's HTTP endpoint.")] = "http://127.0.0.1:8000",
    metrics: Annotated[str, typer.Option(help="Triton's metrics page.")] = "http://127.0.0.1:8002/metrics",
) -> None:
    """Watch the heartbeats of a running Triton server and load dead or stalled models again, until Ctrl-C.

    `tritone serve` does this itself. Run it in the container of the server, or in one that shares its process ids
    (`pid: service:triton`): a process that hangs has to be killed before its model can be loaded again. A model is
    given up after three tries.
    """
    import threading

    from tritone.backends.core.heartbeat import READ_INTERVAL_S
    from tritone.tools.console import say
    from tritone.tools.stop_signals import StopRequested, stop_on_signals
    from tritone.tools.supervisor import Supervisor
    from tritone.tools.supervisor_server import SupervisedServer

    say(f"supervising {http}")
    with stop_on_signals():
        try:
            Supervisor(SupervisedServer(http, metrics), say).run(READ_INTERVAL_S, threading.Event())
        except StopRequested:
            say("stopped")
