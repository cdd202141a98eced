# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Every error of the tree has its HTTP answer."""

from __future__ import annotations

import json

import pytest

from tritone.errors import LEAVES, Cancelled, Internal, InvalidRequest, NotFound, Overloaded, TritoneError, Unsupported
from tritone.gateway.http_errors import HttpFault, ModelNotFound, reply

EXPECTED: dict[type[TritoneError], tuple[int, str, str]] = {
    InvalidRequest: (400, "invalid_request_error", "invalid_request"),
    Unsupported: (400, "invalid_request_error", "unsupported"),
    NotFound: (404, "invalid_request_error", "not_found"),
    Overloaded: (503, "server_error", "overloaded"),
    Cancelled: (499, "server_error", "cancelled"),
    Internal: (500, "server_error", "internal"),
}


def test_the_map_is_total() -> None:
    assert set(EXPECTED) == set(LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_status_type_and_code(leaf: type[TritoneError]) -> None:
    answer = reply(leaf("words"))
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"], error["code"]) == EXPECTED[leaf]
    assert error["message"].startswith("words")


def test_a_full_quota() -> None:
    answer = reply(Overloaded("busy", retry_after_s=0.2, scope="client"))
    assert answer.status == 429
    assert (b"retry-after", b"1") in answer.headers
    assert json.loads(answer.body)["error"]["type"] == "rate_limit_error"


def test_an_unknown_exception_shows_nothing() -> None:
    answer = reply(RuntimeError("/srv/secret"), request_id="r1")
    assert answer.status == 500
    assert b"secret" not in answer.body and b"r1" in answer.body


@pytest.mark.parametrize("name", ["zz", "z" * 10_000, "a\x00b", None])
def test_model_not_found_stays_small(name: str | None) -> None:
    answer = reply(ModelNotFound(name))
    assert answer.status == 404
    assert len(answer.body) < 400
    assert json.loads(answer.body)["error"]["code"] == "model_not_found"


def test_text_that_is_no_unicode_still_makes_an_answer() -> None:
    json.loads(reply(Internal("a\ud800b")).body)
    json.loads(reply(HttpFault(400, "bad", code="c")).body)
