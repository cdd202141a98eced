# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Requests made from a gateway's OpenAPI document by schemathesis: only answers that the document names may come."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritone.tools.bench.fuzz import Announce, Fuzz, Part

_MAX_TOKENS = 2
_TIMEOUT_S = 120.0


class _TimeOver(BaseException):
    """Ends a route's cases. No `Exception`: it would be taken for a failing case."""


def fuzz_schema(part: Part, fuzz: Fuzz, url: str, announce: Announce) -> None:
    """Send `fuzz.cases` requests to each route, or as many as its share of the time allows."""
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    # Those without a body have few cases and leave their time to the others.
    operations.sort(key=lambda operation: operation.method.upper() == "POST")
    end = time.monotonic() + fuzz.seconds
    for number, operation in enumerate(operations):
        name = f"{operation.method.upper()} {operation.path}"
        deadline = time.monotonic() + (end - time.monotonic()) / (len(operations) - number)

        def send(case: Any, name: str = name, deadline: float = deadline) -> None:
            if time.monotonic() > deadline:
                raise _TimeOver
            tame(case.body)
            if part.num_cases % 2 and isinstance(case.body, dict):
                case.body.pop("model", None)  # made-up names would hide all that comes after them
            response = case.call(timeout=_TIMEOUT_S)
            part.num_cases += 1
            part.answers[str(response.status_code)] += 1
            # 503 is documented wherever it can come; the other checks hold for it too.
            is_full = response.status_code == 503
            case.validate_response(response, checks=[c for c in checks if not (is_full and c is not_a_server_error)])
            if part.num_cases % 200 == 0:
                announce(f"OpenAPI … {name}, {part.num_cases} sent, {len(part.faults)} faults")

        try:
            with contextlib.suppress(_TimeOver):
                _drive(operation.as_strategy(), send, fuzz)
        except (Exception, BaseExceptionGroup) as error:
            # Whatever the checks, the client or the generator raise is a finding; the checks raise groups.
            part.faults.append(f"{name}: {' '.join(str(error).split())[:500]}")


def _drive(strategy: Any, send: Callable[[Any], None], fuzz: Fuzz) -> None:
    import hypothesis

    @hypothesis.seed(fuzz.seed)
    @hypothesis.settings(
        max_examples=fuzz.cases,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=strategy)
    def one(case: Any) -> None:
        send(case)

    one()


def tame(body: Any) -> None:
    """Keep generations short where a body would otherwise be allowed to run to the end of the context."""
    if not isinstance(body, dict):
        return
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name)
        if type(value) is int and value > _MAX_TOKENS:
            body[name] = _MAX_TOKENS
    if body.get("max_tokens") is None and body.get("max_completion_tokens") is None:
        body["max_tokens"] = _MAX_TOKENS
    if type(body.get("min_tokens")) is int and body["min_tokens"] > 1:
        body["min_tokens"] = 1
