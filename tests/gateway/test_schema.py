# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Schema-based fuzzing: whatever the OpenAPI document allows, the answers are ones it documents."""

from __future__ import annotations

from typing import Any

import hypothesis
import schemathesis
from doubles.fake_transport import FakeTransport
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tritone.gateway.app import create_app
from tritone.gateway.settings import GatewaySettings

schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(GatewaySettings(), FakeTransport()))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@schema.parametrize()
@hypothesis.settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck)
)
def test_answers_are_as_documented(case: Any) -> None:
    case.call_and_validate(checks=CHECKS)
