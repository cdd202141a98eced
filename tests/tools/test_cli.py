# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The `tritone` command from outside: help worth reading, plain errors, nothing heavy loaded to print a page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("serve", "chat", "demo", "build", "doctor", "env", "bench")


def tritone(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tritone.tools.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"TERM": "dumb", "COLUMNS": "200"} | environment,
    )


def test_the_front_page_lists_every_command() -> None:
    page = tritone("--help")
    assert page.returncode == 0
    for command in COMMANDS:
        assert f" {command} " in page.stdout
    assert "TRITONE_STATE_DIR" in page.stdout
    assert tritone("-h").stdout == page.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    page = tritone(command, "--help")
    assert page.returncode == 0
    assert len(page.stdout.split()) > 25


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "import tritone.tools.cli\n"
        "heavy = {'torch', 'transformers', 'numpy', 'openai', 'fastapi', 'tritonclient'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["build", "nothing", "--explain"], "no pipeline named 'nothing'"),
        (["build", "smollm2_chat"], "nothing to do"),
        (["build", "smollm2_chat", "--explain", "--profile", "nothing"], "no profile 'nothing'"),
        (["build", "smollm2_chat", "--explain", "--set", "rows=3"], "'rows=3' is not a setting"),
        (["build", "smollm2_chat", "--explain", "--set", "thinker.colour=3"], "has no setting 'colour'"),
        (["build", "smollm2_chat", "--explain", "--checkpoint", "/nowhere"], "there is no checkpoint at /nowhere"),
        (["serve", "--repository", "/nowhere"], "there is no repository at /nowhere"),
        (["serve", "--repository", "/tmp", "--name", "x"], "--repository serves what is there"),
        (["serve", "nothing"], "no pipeline named 'nothing'"),
        (["chat", "hello", "--url", "http://127.0.0.1:9/v1"], "refused"),
    ],
)
def test_an_error_is_plain_words(arguments: list[str], expected: str) -> None:
    done = tritone(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert expected in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stdout == ""


def test_an_unknown_option_is_a_usage_error() -> None:
    done = tritone("serve", "--colour", "red")
    assert done.returncode == 2 and "--colour" in done.stderr


def test_a_taken_port_is_told_before_models_load(fake_triton: Path, repository: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = tritone("serve", "--repository", str(repository), TRITONE_PORT=str(port))
    assert done.returncode == 1
    assert f"port {port} on 127.0.0.1 cannot be used for the gateway" in done.stderr


def test_a_bad_key_is_told_before_models_load(fake_triton: Path, repository: Path) -> None:
    done = tritone("serve", "--repository", str(repository), "--port", "0", "--api-key", "short")
    assert done.returncode == 1
    assert "the gateway cannot be configured: TRITONE_API_KEYS" in done.stderr and "short" not in done.stderr


def test_env_is_what_a_shell_can_eval(fake_triton: Path) -> None:
    script = f'eval "$({sys.executable} -m tritone.tools.cli env)" && command -v tritonserver && echo $TRITON_ARGS'
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True)
    wrapper, arguments = done.stdout.splitlines()
    assert wrapper.startswith(os.environ["TRITONE_STATE_DIR"])
    assert "--disable-auto-complete-config" in arguments.split()
    served = subprocess.run([wrapper, "--help"], capture_output=True, text=True, check=True)
    assert "--model-repository" in served.stdout


def test_env_refuses_a_state_directory_that_args_cannot_carry(fake_triton: Path, tmp_path: Path) -> None:
    backends = fake_triton.parent.parent
    spaced = tmp_path / "with space"
    backends.rename(spaced)
    done = tritone("env", TRITONE_TRITONSERVER=str(spaced / "bin" / "tritonserver"))
    assert done.returncode == 1 and "space" in done.stderr


def test_doctor_names_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    done = tritone("doctor", TRITONE_TRITONSERVER="/nowhere/tritonserver")
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if "Triton server" in line]
    assert line.startswith("MISSING") and "/nowhere/tritonserver" in line
