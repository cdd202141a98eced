# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The tool-call parser: what it finds, and that cutting the text changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritone.gateway.tool_calls import (
    MAX_BUFFER_CHARS,
    CallArguments,
    CallStart,
    HermesParser,
    NamedCallParser,
    TextPiece,
    ToolEvent,
    ToolParser,
)


class Found(NamedTuple):
    """Everything a text came to."""

    text: str
    calls: list[tuple[str, str]]  # name, arguments


def gather(events: Sequence[ToolEvent]) -> Found:
    text = ""
    names: list[str] = []
    arguments: list[str] = []
    for event in events:
        if isinstance(event, TextPiece):
            text += event.text
        elif isinstance(event, CallStart):
            assert event.call_index == len(names)
            names.append(event.name)
            arguments.append("")
        else:
            assert isinstance(event, CallArguments)
            arguments[event.call_index] += event.text
    return Found(text, list(zip(names, arguments, strict=True)))


def parse(text: str, cuts: Sequence[int] = (), new_parser: Callable[[], ToolParser] = HermesParser) -> Found:
    parser = new_parser()
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    events: list[ToolEvent] = []
    for begin, end in zip(edges, edges[1:], strict=False):
        events += parser.feed(text[begin:end])
    return gather(events + parser.finish())


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello <b>", Found("Hello <b>", [])),
        ("", Found("", [])),
        (" \n", Found(" \n", [])),
        (call("f", '{"a": 1}'), Found("", [("f", '{"a": 1}')])),
        ("\n" + call("f", "{}") + "\n" + call("g", '{"b": [1, {"c": "}"}]}') + "\n",
         Found("", [("f", "{}"), ("g", '{"b": [1, {"c": "}"}]}')])),
        ("Let me see. " + call("f", "{}") + " Done", Found("Let me see.  Done", [("f", "{}")])),
        ('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', Found("", [("f", '{"a": 1}')])),
        ('<tool_call>{"name": "f"}</tool_call>', Found("", [("f", "{}")])),
        ('<tool_call>{"name": "f", "arguments": null}</tool_call>', Found("", [("f", "{}")])),
        ('<tool_call>{"name": "f", "arguments": "{\\"a\\": 1}"}</tool_call>', Found("", [("f", '{"a": 1}')])),
        (call("f", '{"a": "</tool_call> \\""}'), Found("", [("f", '{"a": "</tool_call> \\""}')])),
        # What small models do: a missing brace, a missing tag, a text in place of the call.
        ('<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>ok', Found("ok", [("f", '{"a": 1}')])),
        ('<tool_call>{"name": "f", "arguments": {"a": 1}}', Found("", [("f", '{"a": 1}')])),
        ("<tool_call>no json</tool_call>", Found("<tool_call>no json</tool_call>", [])),
        ('<tool_call>{"nam": 1}</tool_call>', Found('<tool_call>{"nam": 1}</tool_call>', [])),
        ('<tool_call>{"name": 5}</tool_call>', Found('<tool_call>{"name": 5}</tool_call>', [])),
        ('<tool_call>{"na', Found('<tool_call>{"na', [])),
        ("a <tool_ca", Found("a <tool_ca", [])),
    ],
)  # fmt: skip
def test_what_is_found(text: str, expected: Found) -> None:
    assert parse(text) == expected
    assert parse(text, range(len(text))) == expected


ALPHABET = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        '{"name": "f", "arguments": ',
        '{"name": "g"',
        '{"a": 1}',
        '"x"',
        "}",
        "{",
        "[",
        "]",
    ]
    + [",", ":", '"', "\\", "<", " ", "\n", "text", '"arguments": ', '"name": ', "é", "<tool"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(ALPHABET, max_size=14).map("".join), st.lists(st.integers(0, 120), max_size=12))
def test_any_cutting_equals_the_whole(text: str, cuts: list[int]) -> None:
    assert parse(text, cuts) == parse(text)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("fgh"), st.dictionaries(st.text(max_size=5), st.text(max_size=5))), max_size=3),
    st.lists(st.integers(0, 300), max_size=12),
)
def test_every_well_formed_call_is_found(calls: list[tuple[str, dict[str, str]]], cuts: list[int]) -> None:
    text = "\n".join(call(name, json.dumps(arguments)) for name, arguments in calls)
    found = parse(text, cuts)
    assert found.text == ""
    assert [(name, json.loads(arguments)) for name, arguments in found.calls] == calls


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='<>/tol_cal {}"', max_size=40), st.lists(st.integers(0, 40), max_size=8))
def test_text_without_calls_is_unchanged(text: str, cuts: list[int]) -> None:
    if "<tool_call>" not in text:
        assert parse(text, cuts) == Found(text, [])


def test_arguments_stream_while_they_grow() -> None:
    parser = HermesParser()
    assert parser.feed('<tool_call>{"name": "f", "arguments": {"a"') == [
        CallStart(0, "f"),
        CallArguments(0, '{"a"'),
    ]
    assert parser.feed(": 1") == [CallArguments(0, ": 1")]


def test_text_is_held_back_only_while_it_may_be_a_tag() -> None:
    parser = HermesParser()
    assert parser.feed("a <tool") == [TextPiece("a ")]
    assert parser.feed("box>") == [TextPiece("<toolbox>")]


def test_calls_past_the_limit_are_dropped() -> None:
    text = call("f", "{}") + call("g", "{}")
    assert parse(text, new_parser=lambda: HermesParser(max_calls=1)) == Found("", [("f", "{}")])


def test_a_forced_call_without_tags() -> None:
    text = '{"name": "f", "arguments": {"a": 1}}'
    assert parse(text, range(40), lambda: HermesParser(is_inside=True)) == Found("", [("f", '{"a": 1}')])


def test_a_named_call_is_all_arguments() -> None:
    assert parse('{"a": 1}', range(9), lambda: NamedCallParser("f")) == Found("", [("f", '{"a": 1}')])


def test_the_buffer_is_bounded() -> None:
    parser = HermesParser()
    text = "<tool_call>" + '{"x": "' + "y" * (MAX_BUFFER_CHARS + 100)
    found = gather([event for piece in (text[:20], text[20:]) for event in parser.feed(piece)])
    assert found == Found(text, [])
