# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Checks a parsed body against its schema and turns every fault into one error that names the field.

A fault message never quotes the input: only the path of the field, and our words or the schema's limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from tritone.errors import InvalidRequest, TritoneError, Unsupported

MAX_ERRORS = 20
_MAX_NAME_CHARS = 64
_UNSUPPORTED = "unsupported"

Model = TypeVar("Model", bound=BaseModel)


class StrictModel(BaseModel):
    """Base of every request schema: no unknown fields, no conversions, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


def unsupported(message: str, field: str = "") -> PydanticCustomError:
    """For validators: a well-formed value that this server cannot do. `field` is relative to the failing one."""
    return PydanticCustomError(_UNSUPPORTED, "{message}", {"message": message, "field": field})


def invalid(message: str, field: str = "") -> PydanticCustomError:
    """For validators: a value that breaks a rule."""
    return PydanticCustomError("rule", "{message}", {"message": message, "field": field})


def validate(schema: type[Model], body: dict[str, Any], unsupported_fields: Mapping[str, str]) -> Model:
    """`body` as `schema`. `unsupported_fields` are OpenAI's fields that would change the answer, with the reason."""
    for name, reason in unsupported_fields.items():
        if body.get(name) is not None:
            raise Unsupported(f"`{name}`: {reason}", field=name)
    try:
        return schema.model_validate({key: value for key, value in body.items() if key not in unsupported_fields})
    except ValidationError as error:
        raise _summary(error.errors(include_url=False, include_input=False)) from None


def _summary(faults: Sequence[ErrorDetails]) -> TritoneError:
    lines = [f"`{path_of(fault)}`: {_words(fault)}" for fault in faults[:MAX_ERRORS]]
    if len(faults) > MAX_ERRORS:
        lines.append(f"and {len(faults) - MAX_ERRORS} more faults")
    error = Unsupported if faults[0]["type"] == _UNSUPPORTED else InvalidRequest
    return error("; ".join(lines), field=path_of(faults[0]))


def path_of(fault: ErrorDetails) -> str:
    """The field at fault, as `messages[0].role`."""
    path = ""
    for part in fault["loc"]:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith(("<", "[")):  # tags of unions and "[key]" are no part of the body
            path += f".{_printable(part)}"
    extra = fault.get("ctx", {}).get("field", "")
    return f"{path}.{extra}".strip(".") if extra else path.strip(".")


def _words(fault: ErrorDetails) -> str:
    if fault["type"] == "extra_forbidden":
        if fault["loc"] == ("extra_body",):
            return "unknown field; put extension fields at the top level"
        return "unknown field"
    return fault["msg"][:200]


def _printable(name: str) -> str:
    shown = "".join(character if character.isalnum() or character in "_-" else "?" for character in name)
    return shown[:_MAX_NAME_CHARS]
