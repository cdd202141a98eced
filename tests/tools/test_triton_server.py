# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The launcher against a stand-in server: readiness, every way a start can fail, and what is left afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritone.tools.launch import choose_ports, start_triton
from tritone.tools.ports import free_ports
from tritone.tools.problems import LaunchError
from tritone.tools.state import new_run_folder

pytestmark = pytest.mark.usefixtures("fake_triton")


def assert_clean(run_folder: Path) -> None:
    command = (run_folder / "tritonserver.log").read_text().splitlines()[0]
    prefix = command.partition("shm-region-prefix-name=")[2].split()[0]
    assert prefix.startswith("tritone_")
    assert not list(Path("/dev/shm").glob(f"{prefix}*"))


def test_a_server_starts_serves_and_stops(repository: Path) -> None:
    run_folder = new_run_folder("test")
    said: list[str] = []
    with_ports = choose_ports()
    server = start_triton(repository, run_folder, ports=with_ports, progress=said.append, timeout_s=20)
    try:
        assert server.is_ready() and not server.has_ended()
        assert server.grpc_address == f"127.0.0.1:{with_ports.grpc}"
        command = server.log_path.read_text().splitlines()[0].split()
    finally:
        server.stop()
    assert server.has_ended() and not server.is_ready()
    for expected in (
        f"--model-repository={repository}",
        "--model-control-mode=explicit",
        "--load-model=echo",
        "--load-model=tritone_selftest",
        "--disable-auto-complete-config",
        "--strict-readiness=true",
        "--exit-timeout-secs=10",
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        "--metrics-config=histogram_latencies=true",
        f"--http-port={with_ports.http}",
    ):
        assert expected in command
    # This server's --help does not name them.
    assert not any("allow-client-shm" in word or "metrics-address" in word for word in command)
    assert all(text.startswith("starting Triton") for text in said)
    assert_clean(run_folder)


@pytest.mark.parametrize(
    ("mode", "message", "details"),
    [
        ("dead", "the Triton server ended while it was starting", "the disk is on fire"),
        ("load-failure", "a model failed to load", "failed to load 'echo' version 1: Internal: no"),
        ("never-ready", "the Triton server was not ready within 1 s", ""),
        ("zero-bytes", "tensors do not survive the way through Triton's Python backend", ""),
    ],
)
def test_a_failed_start_says_why_and_leaves_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, mode: str, message: str, details: str
) -> None:
    monkeypatch.setenv("FAKE_TRITON_MODE", mode)
    run_folder = new_run_folder("test")
    timeout_s = 1.0 if mode == "never-ready" else 20.0
    with pytest.raises(LaunchError) as caught:
        start_triton(repository, run_folder, timeout_s=timeout_s)
    assert message in caught.value.message
    assert details in (caught.value.details or "")
    assert caught.value.remedy
    assert_clean(run_folder)


def test_the_repository_is_checked_before_anything_starts(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="holds no model named nothing"):
        start_triton(repository, tmp_path, models=["nothing"])
    with pytest.raises(LaunchError, match="holds no model"):
        start_triton(tmp_path / "empty", tmp_path)


def test_a_taken_port_is_said_before_anything_starts() -> None:
    import socket

    [port] = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(LaunchError, match=f"port {port} on 127.0.0.1 cannot be used for Triton gRPC"):
            choose_ports(grpc=port)
    assert choose_ports(grpc=port).grpc == port


def test_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20
