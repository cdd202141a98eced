# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The one exception tree of Tritone and its two projections: Triton error codes and HTTP statuses.

    TritoneError
    ├── InvalidRequest   the request breaks a rule of the API
    ├── NotFound         a model, voice or job of that name does not exist
    ├── Unsupported      the request is well formed, this pipeline cannot do it
    ├── Overloaded       no room now; `retry_after_s` says when to try again
    ├── Cancelled        the client went away or asked to stop
    └── Internal         our fault; the message never carries a library's text

A Triton error can hold only text, so an error crosses the wire as JSON
`{code, field, message, retry_after_s}`: `to_wire` writes it, `from_wire` reads it back.
"""

from __future__ import annotations

import json
from typing import ClassVar

MAX_MESSAGE_CHARS = 2000
_WIRE_START = '{"code"'


class TritoneError(Exception):
    """Base of every error that may reach a client. `field` names the request field at fault."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, field: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message[:MAX_MESSAGE_CHARS])
        self.message = message[:MAX_MESSAGE_CHARS]
        self.field = field
        self.retry_after_s = retry_after_s


class InvalidRequest(TritoneError):
    """The request breaks a rule of the API; `field` names the offending field."""

    code = "invalid_request"


class NotFound(TritoneError):
    """The named model, voice or job does not exist."""

    code = "not_found"


class Unsupported(TritoneError):
    """Well formed, but not something this pipeline can do."""

    code = "unsupported"


class Overloaded(TritoneError):
    """No room now. `scope` is "server" when the server is full, "client" when the client's own quota is."""

    code = "overloaded"

    def __init__(self, message: str, *, retry_after_s: float = 1.0, scope: str = "server") -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.scope = scope


class Cancelled(TritoneError):
    """The client closed its connection or cancelled; only logs see it."""

    code = "cancelled"


class Internal(TritoneError):
    """A fault of ours. The cause goes to the log, the client gets our words and a request id."""

    code = "internal"


LEAVES: tuple[type[TritoneError], ...] = (InvalidRequest, NotFound, Unsupported, Overloaded, Cancelled, Internal)
_BY_CODE = {leaf.code: leaf for leaf in LEAVES}

# Names of the constants of `pb_utils.TritonError`.
TRITON_CODES: dict[type[TritoneError], str] = {
    InvalidRequest: "INVALID_ARG",
    NotFound: "NOT_FOUND",
    Unsupported: "UNSUPPORTED",
    Overloaded: "UNAVAILABLE",
    Cancelled: "CANCELLED",
    Internal: "INTERNAL",
}

# 499 is never sent: a cancelled client has gone. It is what the access log shows.
HTTP_STATUSES: dict[type[TritoneError], int] = {
    InvalidRequest: 400,
    NotFound: 404,
    Unsupported: 400,
    Overloaded: 503,
    Cancelled: 499,
    Internal: 500,
}


def http_status(error: TritoneError) -> int:
    """HTTP status of `error`: as the table says, and 429 when it is the client's own quota that is full."""
    if isinstance(error, Overloaded) and error.scope == "client":
        return 429
    return HTTP_STATUSES[type(error)]


def to_wire(error: TritoneError) -> str:
    """The JSON text a `TritonError` carries."""
    return json.dumps(
        {
            "code": error.code,
            "field": error.field,
            "message": error.message,
            "retry_after_s": error.retry_after_s,
        }
    )


def carries_wire(text: str) -> bool:
    """Whether a Triton error text holds an error of ours; Triton's own words do not."""
    return _WIRE_START in text


def from_wire(text: str) -> TritoneError:
    """Read an error back from a Triton error text. Text that is not ours becomes `Internal` without being quoted."""
    start = text.find(_WIRE_START)
    if start < 0:
        return Internal("the inference server failed to process the request")
    try:
        fields, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return Internal("the inference server failed to process the request")
    leaf = _BY_CODE.get(fields.get("code"), Internal)
    message = str(fields.get("message", ""))
    if leaf is Overloaded:
        return Overloaded(message, retry_after_s=float(fields.get("retry_after_s") or 1.0))
    return leaf(message, field=fields.get("field"))
