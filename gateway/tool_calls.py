# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Finds tool calls in a model's text while it streams: `<tool_call>{"name", "arguments"}</tool_call>` (Hermes, Qwen).

Law: the events of any cutting of a text add up to the events of the whole. What cannot be read as a call comes out
as text, unchanged, unless its name has been sent already. Knows nothing of HTTP or of which tools exist.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import NamedTuple, Protocol

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
MAX_BUFFER_CHARS = 65536


class TextPiece(NamedTuple):
    """Text outside of any call."""

    text: str


class CallStart(NamedTuple):
    """A call of a named function begins."""

    call_index: int
    name: str


class CallArguments(NamedTuple):
    """The next piece of a call's arguments, JSON text."""

    call_index: int
    text: str


ToolEvent = TextPiece | CallStart | CallArguments


class ToolParser(Protocol):
    """Turns text into events. `finish` is called once, after the last `feed`."""

    def feed(self, text: str) -> list[ToolEvent]: ...

    def finish(self) -> list[ToolEvent]: ...


class NamedCallParser:
    """For a forced function: the whole text is its arguments."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_started = False

    def feed(self, text: str) -> list[ToolEvent]:
        events: list[ToolEvent] = [] if self._has_started else [CallStart(0, self._name)]
        self._has_started = True
        return [*events, CallArguments(0, text)] if text else events

    def finish(self) -> list[ToolEvent]:
        return []


class _State(Enum):
    OUTSIDE = auto()  # text between calls; `_pending` holds what may still turn out to be a tag or mere space
    INSIDE = auto()  # the JSON of a call, read by `_call`
    AFTER = auto()  # behind a call's JSON, before its closing tag


class HermesParser:
    """The parser for texts that may hold calls between other text."""

    def __init__(self, *, is_inside: bool = False, max_calls: int | None = None) -> None:
        """`is_inside`: the text begins within a call, without a tag. Calls past `max_calls` are dropped."""
        self._state = _State.INSIDE if is_inside else _State.OUTSIDE
        self._pending = ""
        self._has_text = False  # text was sent since the last call
        self._num_calls = 0
        self._max_calls = max_calls
        self._call = _CallReader(0, tag="") if is_inside else _CallReader(0)

    def feed(self, text: str) -> list[ToolEvent]:
        self._pending += text
        events: list[ToolEvent] = []
        is_moving = True
        while is_moving:
            if self._state is _State.OUTSIDE:
                is_moving = self._read_outside(events)
            elif self._state is _State.INSIDE:
                is_moving = self._read_inside(events)
            else:
                is_moving = self._read_after()
        return self._within_limit(events)

    def finish(self) -> list[ToolEvent]:
        events: list[ToolEvent] = []
        if self._state is _State.INSIDE:
            events.extend(self._call.abandon())
        elif self._state is _State.OUTSIDE and self._pending and (self._is_worth_sending(self._pending)):
            events.append(TextPiece(self._pending))
        self._pending = ""
        return self._within_limit(events)

    def _read_outside(self, events: list[ToolEvent]) -> bool:
        tag = self._pending.find(OPEN)
        text = self._pending[:tag] if tag >= 0 else self._pending[: len(self._pending) - _tag_prefix(self._pending)]
        if text and (self._has_text or not text.isspace()):
            events.append(TextPiece(text))
            self._has_text = True
            self._pending = self._pending[len(text) :]
            tag -= len(text)
        if tag < 0:
            return False
        self._pending = self._pending[tag + len(OPEN) :]
        self._call = _CallReader(self._num_calls)
        self._state = _State.INSIDE
        return True

    def _read_inside(self, events: list[ToolEvent]) -> bool:
        progress = self._call.feed(self._pending)
        events.extend(progress.events)
        self._pending = progress.rest
        if not progress.has_ended:
            return False
        if self._call.has_started:
            self._num_calls += 1
            self._has_text = False
            self._state = _State.AFTER
        else:
            self._has_text = True
            self._state = _State.OUTSIDE
        return True

    def _read_after(self) -> bool:
        rest = self._pending.lstrip()
        if len(rest) < len(CLOSE) and CLOSE.startswith(rest):
            return False
        self._pending = rest.removeprefix(CLOSE)
        self._state = _State.OUTSIDE
        return True

    def _is_worth_sending(self, text: str) -> bool:
        return self._has_text or not self._num_calls or not text.isspace()

    def _within_limit(self, events: list[ToolEvent]) -> list[ToolEvent]:
        if self._max_calls is None:
            return events
        return [event for event in events if isinstance(event, TextPiece) or event.call_index < self._max_calls]


class _Progress(NamedTuple):
    events: list[ToolEvent]
    has_ended: bool
    rest: str  # what follows the call


class _CallReader:
    """Reads one `{"name": …, "arguments": {…}}` as it arrives and sends the arguments on while they grow."""

    def __init__(self, index: int, *, tag: str = OPEN) -> None:
        self._index = index
        self._tag = tag
        self._text = ""
        self._position = 0
        self._depth = 0
        self._is_string = False
        self._is_escaped = False
        self._is_value = False  # behind the colon of a top-level key
        self._begin = -1  # of the string being read
        self._key = ""
        self._value_begin = -1
        self._name: str | None = None
        self._arguments_begin = -1
        self._arguments_end = -1
        self._sent = -1  # arguments are sent up to here

    @property
    def has_started(self) -> bool:
        """Whether the call's name has been sent."""
        return self._name is not None

    def feed(self, text: str) -> _Progress:
        """Read on until the call ends, on its last brace or at the first character that no JSON can have there."""
        self._text += text
        events: list[ToolEvent] = []
        while self._position < len(self._text):
            had_started = self.has_started
            is_valid = self._read_character(self._text[self._position])
            if self.has_started and not had_started:
                events.append(CallStart(self._index, self._name or ""))
            if is_valid:
                self._position += 1
            is_too_long = not self.has_started and self._position > MAX_BUFFER_CHARS
            if not is_valid or is_too_long or self._depth == 0 and self._position and self._has_opened():
                return self._end(events, is_complete=is_valid and not is_too_long)
        events.extend(self._send_arguments())
        return _Progress(events, False, "")

    def abandon(self) -> list[ToolEvent]:
        """The text ended inside the call."""
        return [] if self.has_started else [TextPiece(self._tag + self._text)] if self._tag + self._text else []

    def _has_opened(self) -> bool:
        return not self._text[: self._position].isspace()

    def _end(self, events: list[ToolEvent], *, is_complete: bool) -> _Progress:
        rest = self._text[self._position :]
        if not self.has_started:
            return _Progress([TextPiece(self._tag + self._text[: self._position])], True, rest)
        events.extend(self._send_arguments())
        if self._sent < 0 and is_complete:
            events.append(CallArguments(self._index, self._whole_arguments()))
        return _Progress(events, True, rest)

    def _send_arguments(self) -> list[ToolEvent]:
        """Arguments that are an object go out as they grow; other values wait for their end."""
        begin = self._arguments_begin
        if self._name is None or begin < 0 or self._text[begin] != "{":
            return []
        end = self._arguments_end if self._arguments_end >= 0 else self._position
        sent = max(self._sent, begin)
        self._sent = max(sent, end)
        return [CallArguments(self._index, self._text[sent:end])] if end > sent else []

    def _whole_arguments(self) -> str:
        value = self._text[self._arguments_begin : self._arguments_end].strip() if self._arguments_begin >= 0 else ""
        if value.startswith('"'):  # some models write the arguments as a JSON string
            return _string_value(value) or "{}"
        return "{}" if value in ("", "null") else value

    def _read_character(self, character: str) -> bool:
        """Advance the state by one character; False when it cannot stand here."""
        if self._is_string:
            self._read_in_string(character)
        elif character == '"':
            if not self._depth:
                return False
            self._is_string = True
            self._begin = self._position
            self._mark_value()
        elif character in "{[":
            if not self._depth and character == "[":
                return False
            self._mark_value()
            self._depth += 1
        elif character in "}]":
            self._close_bracket()
        elif character == ":" and self._depth == 1:
            self._is_value, self._value_begin = True, -1
        elif character == "," and self._depth == 1:
            self._end_value(self._position)
        elif not character.isspace():
            if character == "<" or not self._depth:
                return False
            self._mark_value()
        return True

    def _read_in_string(self, character: str) -> None:
        if self._is_escaped:
            self._is_escaped = False
        elif character == "\\":
            self._is_escaped = True
        elif character == '"':
            self._is_string = False
            if self._depth == 1:
                text = self._text[self._begin : self._position + 1]
                if not self._is_value:
                    self._key = _string_value(text) or ""
                elif self._key == "name" and self._name is None:
                    self._name = _string_value(text) or None

    def _close_bracket(self) -> None:
        self._depth -= 1
        if self._depth == 1 and self._key == "arguments" and self._arguments_end < 0:
            self._arguments_end = self._position + 1
        elif self._depth <= 0:
            self._depth = 0
            self._end_value(self._position)

    def _mark_value(self) -> None:
        if self._depth == 1 and self._is_value and self._value_begin < 0:
            self._value_begin = self._position
            if self._key == "arguments" and self._arguments_begin < 0:
                self._arguments_begin = self._position

    def _end_value(self, end: int) -> None:
        if self._is_value and self._key == "arguments" and self._arguments_end < 0:
            self._arguments_end = end
        self._is_value = False


def _string_value(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _tag_prefix(text: str) -> int:
    """How many characters at the end of `text` may be the beginning of an opening tag."""
    for length in range(min(len(text), len(OPEN) - 1), 0, -1):
        if text.endswith(OPEN[:length]):
            return length
    return 0
