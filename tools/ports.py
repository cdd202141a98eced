# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Find free TCP ports, or say that a wanted one is taken."""

from __future__ import annotations

import socket

from tritone.tools.problems import LaunchError

LOOPBACK = "127.0.0.1"


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """`count` different ports that were free a moment ago. All are held open until the last one is known."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((host, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def require_free(port: int, what: str, host: str = LOOPBACK) -> None:
    """Raise `LaunchError` when `port` of `host` cannot be listened on."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
        # As servers do: a port whose last connections are still closing counts as free.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except OSError as error:
            raise LaunchError(
                f"port {port} on {host} cannot be used for {what}: {error.strerror}",
                remedy="stop what listens there, or choose another port",
            ) from None
