# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Errors as HTTP shows them: OpenAI's envelope, its types and codes, and the headers that go with a status.

Knows nothing of routes. Faults that only HTTP has (no key, no such route or model, body too large) are `HttpFault`s;
all others are `TritoneError`s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from tritone.errors import Internal, InvalidRequest, NotFound, Overloaded, TritoneError, Unsupported, http_status

# A model name that is repeated to who asked for it: nothing that could be more than a name.
_SHOWN_NAME = re.compile(r"[A-Za-z0-9._/:-]{1,64}")
JSON_TYPE = (b"content-type", b"application/json")
Headers = Sequence[tuple[bytes, bytes]]


class HttpFault(Exception):
    """A fault of the HTTP exchange itself."""

    def __init__(
        self, status: int, message: str, *, code: str, field: str | None = None, headers: Headers = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.field = field
        self.headers = headers


class ModelNotFound(HttpFault):
    """The request names a model that is not served."""

    def __init__(self, name: str | None = None) -> None:
        shown = f" `{name}`" if name and _SHOWN_NAME.fullmatch(name) else ""
        message = f"The model{shown} does not exist or does not serve this route."
        super().__init__(404, message, code="model_not_found", field="model")


class ErrorReply(NamedTuple):
    """A complete error answer."""

    code: str
    status: int
    body: bytes
    headers: Headers


def envelope(error: Exception, *, request_id: str = "") -> dict[str, Any]:
    """OpenAI's `{"error": {message, type, param, code}}` for an error. Unknown exceptions never show their text."""
    if isinstance(error, HttpFault):
        kind = "authentication_error" if error.status == 401 else "invalid_request_error"
        if error.status >= 500:
            kind = "server_error"
        return _envelope(error.message, kind, error.field, error.code)
    if not isinstance(error, TritoneError):
        error = Internal("The gateway failed to process the request.")
    if isinstance(error, Internal) and request_id:
        return _envelope(f"{error.message} (request id {request_id})", "server_error", error.field, error.code)
    if isinstance(error, InvalidRequest | Unsupported | NotFound):
        return _envelope(error.message, "invalid_request_error", error.field, error.code)
    if isinstance(error, Overloaded) and error.scope == "client":
        return _envelope(error.message, "rate_limit_error", error.field, "rate_limit_exceeded")
    return _envelope(error.message, "server_error", error.field, error.code)


def reply(error: Exception, *, request_id: str = "") -> ErrorReply:
    """Status, body and headers of an error answer."""
    described = envelope(error, request_id=request_id)
    code, body = described["error"]["code"], orjson.dumps(described)
    if isinstance(error, HttpFault):
        return ErrorReply(code, error.status, body, (JSON_TYPE, *error.headers))
    if not isinstance(error, TritoneError):
        return ErrorReply(code, 500, body, (JSON_TYPE,))
    headers: tuple[tuple[bytes, bytes], ...] = (JSON_TYPE,)
    if error.retry_after_s is not None:
        headers += ((b"retry-after", str(max(1, math.ceil(error.retry_after_s))).encode()),)
    return ErrorReply(code, http_status(error), body, headers)


def _envelope(message: str, kind: str, field: str | None, code: str) -> dict[str, Any]:
    # Lone surrogates cannot be written as JSON; no message of ours holds one, a stage's might.
    text = message.encode("utf-8", "replace").decode()
    return {"error": {"message": text, "type": kind, "param": field, "code": code}}
