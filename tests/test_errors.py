# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The error maps are total and the wire form survives the way there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone import errors


def leaves_of(error: type[errors.TritoneError]) -> set[type[errors.TritoneError]]:
    children = error.__subclasses__()
    return {error} if not children else set().union(*(leaves_of(child) for child in children))


def test_every_leaf_maps_once_to_a_triton_code_and_once_to_a_status() -> None:
    leaves = leaves_of(errors.TritoneError)
    assert leaves == set(errors.LEAVES) == set(errors.TRITON_CODES) == set(errors.HTTP_STATUSES)
    assert len({leaf.code for leaf in leaves}) == len(leaves)
    assert len(set(errors.TRITON_CODES.values())) == len(leaves)


@pytest.mark.parametrize("leaf", errors.LEAVES)
@given(message=st.text(max_size=300), field=st.none() | st.text(max_size=40))
def test_wire_form_comes_back(leaf: type[errors.TritoneError], message: str, field: str | None) -> None:
    if leaf is errors.Overloaded:
        sent: errors.TritoneError = errors.Overloaded(message, retry_after_s=2.5)
    else:
        sent = leaf(message, field=field)
    prefixed = f"in ensemble 'x', Failed to process the request(s): {errors.to_wire(sent)}, trailing"
    received = errors.from_wire(prefixed)
    assert type(received) is leaf
    assert (received.message, received.field, received.retry_after_s) == (message, sent.field, sent.retry_after_s)


@given(text=st.text())
def test_foreign_text_is_never_quoted(text: str) -> None:
    received = errors.from_wire("boom " + text)
    assert isinstance(received, errors.TritoneError)
    assert received.message == "the inference server failed to process the request"


def test_overload_of_the_client_is_429_and_of_the_server_503() -> None:
    assert errors.http_status(errors.Overloaded("full")) == 503
    assert errors.http_status(errors.Overloaded("yours", scope="client")) == 429
