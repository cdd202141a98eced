# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the gateway, read once from `TRITONE_*` environment variables.

Knows nothing of what the settings steer. `docs/ENV.md` holds the same table for readers; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, NamedTuple

MEBIBYTE = 1 << 20


class SettingsError(ValueError):
    """One or more variables hold a value outside their allowed set; the text lists them all."""


class Variable(NamedTuple):
    """One environment variable: its name, reader, allowed values and meaning."""

    name: str
    read: Callable[[str], Any]
    allowed: str
    meaning: str
    is_secret: bool = False


def _integer(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return read


def _seconds(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if math.isnan(value) or not low <= value <= high:
            raise ValueError(text)
        return value

    return read


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not 1 <= int(port) <= 65535:
        raise ValueError(text)
    return text


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError(text)
    return text


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(part.strip() for part in text.split(",") if part.strip())
    if any(len(key) < 8 or not key.isascii() or not key.isprintable() or " " in key for key in keys):
        raise ValueError(text)
    return keys


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(part.strip().rstrip("/") for part in text.split(",") if part.strip())
    if any(not origin.startswith(("http://", "https://")) for origin in origins):
        raise ValueError(text)
    return origins


def _host(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        raise ValueError(text)
    return text


def _level(text: str) -> str:
    if text not in ("debug", "info", "warning", "error"):
        raise ValueError(text)
    return text


def _setting(
    name: str, default: Any, read: Callable[[str], Any], allowed: str, meaning: str, *, is_secret: bool = False
) -> Any:
    return field(default=default, repr=not is_secret, metadata={"v": Variable(name, read, allowed, meaning, is_secret)})


@dataclass(frozen=True)
class GatewaySettings:
    """Everything that can be configured. Defaults serve one machine on its loopback address."""

    host: str = _setting("TRITONE_HOST", "127.0.0.1", _host, "address or name", "Address the gateway listens on")
    port: int = _setting("TRITONE_PORT", 8091, _integer(0, 65535), "0..65535 (0: any free)", "Port of the gateway")
    triton_grpc: str = _setting(
        "TRITONE_TRITON_GRPC", "127.0.0.1:8001", _address, "host:port", "gRPC address of tritonserver"
    )
    triton_metrics: str = _setting(
        "TRITONE_TRITON_METRICS", "", _url, "http(s) URL", "Triton's metrics page, appended to `/metrics`; unset: not"
    )
    triton_channels: int = _setting(
        "TRITONE_TRITON_CHANNELS", 2, _integer(1, 64), "1..64", "TCP connections to tritonserver"
    )
    api_keys: tuple[str, ...] = _setting(
        "TRITONE_API_KEYS",
        (),
        _keys,
        "comma list, each 8 or more printable ASCII characters without spaces",
        "Keys that may use the gateway; unset: no key is asked for",
        is_secret=True,
    )
    cors_origins: tuple[str, ...] = _setting(
        "TRITONE_CORS_ORIGINS", (), _origins, "comma list of http(s) origins", "Browser origins allowed; unset: none"
    )
    max_body_bytes: int = _setting(
        "TRITONE_MAX_BODY_BYTES", 64 * MEBIBYTE, _integer(1024, 1 << 32), "1024..4294967296", "Largest request body"
    )
    max_header_bytes: int = _setting(
        "TRITONE_MAX_HEADER_BYTES", 32768, _integer(1024, MEBIBYTE), "1024..1048576", "Largest request head"
    )
    max_bodies_bytes: int = _setting(
        "TRITONE_MAX_BODIES_BYTES",
        256 * MEBIBYTE,
        _integer(1024, 1 << 40),
        "1024..1099511627776",
        "Request bodies in memory at once, the first 64 KiB of each not counted; more get 503",
    )
    max_answer_bytes: int = _setting(
        "TRITONE_MAX_ANSWER_BYTES",
        32 * MEBIBYTE,
        _integer(1024, 1 << 32),
        "1024..4294967296",
        "Largest answer that is gathered into one body; a stream may be longer",
    )
    max_connections: int = _setting(
        "TRITONE_MAX_CONNECTIONS",
        1024,
        _integer(1, 1_000_000),
        "1..1000000",
        "TCP connections at once; beyond them the longest idle one is closed, else the new one",
    )
    max_inflight: int = _setting(
        "TRITONE_MAX_INFLIGHT", 256, _integer(1, 100_000), "1..100000", "Generations at once; more wait"
    )
    max_waiting: int = _setting(
        "TRITONE_MAX_WAITING", 256, _integer(0, 100_000), "0..100000", "Requests that wait for a place; more get 503"
    )
    max_queue_s: float = _setting(
        "TRITONE_MAX_QUEUE_S",
        60.0,
        _seconds(0.01, 3600),
        "0.01..3600",
        "Longest wait for a place, and after it for the first chunk; then 503",
    )
    max_inflight_per_key: int = _setting(
        "TRITONE_MAX_INFLIGHT_PER_KEY",
        64,
        _integer(1, 100_000),
        "1..100000",
        "Requests of one API key that are read, wait or run; more get 429",
    )
    max_unread_bytes: int = _setting(
        "TRITONE_MAX_UNREAD_BYTES",
        8 * MEBIBYTE,
        _integer(1024, 1 << 32),
        "1024..4294967296",
        "Output waiting for a slow client before its request is cancelled",
    )
    max_parallel_prompts: int = _setting(
        "TRITONE_MAX_PARALLEL_PROMPTS",
        16,
        _integer(1, 1024),
        "1..1024",
        "Prompts of one request that run at once; the others wait their turn",
    )
    request_timeout_s: float = _setting(
        "TRITONE_REQUEST_TIMEOUT_S", 600.0, _seconds(0.1, 86400), "0.1..86400", "Longest a generation may take"
    )
    body_timeout_s: float = _setting(
        "TRITONE_BODY_TIMEOUT_S", 30.0, _seconds(0.1, 3600), "0.1..3600", "Longest a request body may take to arrive"
    )
    head_timeout_s: float = _setting(
        "TRITONE_HEAD_TIMEOUT_S",
        30.0,
        _seconds(0.05, 3600),
        "0.05..3600",
        "Longest a request's head may take to arrive",
    )
    write_timeout_s: float = _setting(
        "TRITONE_WRITE_TIMEOUT_S",
        30.0,
        _seconds(0.05, 3600),
        "0.05..3600",
        "How long a client may take next to nothing of its answer before its connection is dropped",
    )
    drain_timeout_s: float = _setting(
        "TRITONE_DRAIN_TIMEOUT_S", 20.0, _seconds(0, 3600), "0..3600", "How long a stop waits for running requests"
    )
    log_level: str = _setting(
        "TRITONE_LOG_LEVEL", "info", _level, "debug, info, warning, error", "Least severe log line written"
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> GatewaySettings:
        """Read every variable; all faults are raised together. A variable that is set but empty counts as unset."""
        values: dict[str, Any] = {}
        faults: list[str] = []
        for setting in fields(cls):
            variable = variable_of(setting)
            text = environment.get(variable.name, "")
            if not text:
                continue
            try:
                values[setting.name] = variable.read(text)
            except ValueError:
                shown = "(hidden)" if variable.is_secret else repr(text[:80])
                faults.append(f"{variable.name}={shown}: allowed is {variable.allowed}")
        if faults:
            raise SettingsError("; ".join(faults))
        return cls(**values)


def variable_of(setting: Field[Any]) -> Variable:
    """The environment variable behind a field of `GatewaySettings`."""
    variable: Variable = setting.metadata["v"]
    return variable


def environment_table() -> str:
    """The Markdown table of every variable, as `docs/ENV.md` shows it."""
    lines = ["| variable | default | allowed | meaning |", "|---|---|---|---|"]
    for setting in fields(GatewaySettings):
        variable = variable_of(setting)
        default = setting.default if setting.default is not MISSING else ""
        shown = f"`{default}`" if default not in ("", ()) else "unset"
        lines.append(f"| `{variable.name}` | {shown} | {variable.allowed} | {variable.meaning} |")
    return "\n".join(lines)
