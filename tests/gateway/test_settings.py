# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Settings from the environment, and the table that documents them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tritone.gateway.settings import GatewaySettings, SettingsError, environment_table

ENV_PAGE = Path(__file__).resolve().parents[2] / "docs" / "ENV.md"


def test_defaults_without_variables() -> None:
    settings = GatewaySettings.from_environment({})
    assert settings == GatewaySettings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8091)


def test_values_are_read() -> None:
    settings = GatewaySettings.from_environment(
        {
            "TRITONE_PORT": "9000",
            "TRITONE_API_KEYS": "first-key, second-key",
            "TRITONE_CORS_ORIGINS": "https://a.example/,http://b.example",
            "TRITONE_REQUEST_TIMEOUT_S": "2.5",
            "TRITONE_HOST": "",
        }
    )
    assert settings.port == 9000
    assert settings.api_keys == ("first-key", "second-key")
    assert settings.cors_origins == ("https://a.example", "http://b.example")
    assert settings.request_timeout_s == 2.5
    assert settings.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRITONE_PORT", "port"),
        ("TRITONE_PORT", "70000"),
        ("TRITONE_TRITON_GRPC", "localhost"),
        ("TRITONE_TRITON_GRPC", "localhost:0"),
        ("TRITONE_TRITON_METRICS", "file:///etc/passwd"),
        ("TRITONE_CORS_ORIGINS", "*"),
        ("TRITONE_MAX_BODY_BYTES", "1"),
        ("TRITONE_REQUEST_TIMEOUT_S", "nan"),
        ("TRITONE_LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_names_variable_value_and_allowed(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        GatewaySettings.from_environment({name: value})
    assert str(caught.value).startswith(f"{name}={value!r}: allowed is ")


def test_all_faults_at_once_and_no_key_in_them() -> None:
    with pytest.raises(SettingsError) as caught:
        GatewaySettings.from_environment({"TRITONE_PORT": "x", "TRITONE_API_KEYS": "short"})
    assert "TRITONE_PORT" in str(caught.value) and "TRITONE_API_KEYS" in str(caught.value)
    assert "short" not in str(caught.value)


def test_keys_do_not_show_in_repr() -> None:
    assert "secret-key" not in repr(dataclasses.replace(GatewaySettings(), api_keys=("secret-key",)))


def test_the_page_holds_the_table() -> None:
    assert environment_table() in ENV_PAGE.read_text()
