# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of text: any cutting gives the same, stop strings never show, characters stay whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritone.backends.ar.detokenizer import Detokenizer, StopStringFilter
from tritone.backends.models.checkpoint import Checkpoint

short = st.text("ab", min_size=1, max_size=3)


@given(
    pieces=st.lists(st.text("abc", max_size=4), max_size=12),
    stops=st.lists(short, max_size=3),
    include=st.booleans(),
)
def test_the_filter_equals_looking_at_the_whole_text(pieces: list[str], stops: list[str], include: bool) -> None:
    whole = "".join(pieces)
    stream = StopStringFilter(tuple(stops), include_stop=include)
    shown, is_stopped = "", False
    for piece in pieces:
        result = stream.push(piece)
        shown += result.text
        assert include or not any(stop in shown for stop in stops)
        if result.is_stopped:
            is_stopped = True
            break
    if not is_stopped:
        shown += stream.flush()
    ends = [whole.find(stop) + len(stop) for stop in stops if stop in whole]
    assert is_stopped == bool(ends)
    if not ends:
        assert shown == whole
    elif include:
        assert whole.startswith(shown) and any(shown.endswith(stop) for stop in stops)
    else:
        assert whole.startswith(shown)
        assert any(whole.startswith(shown + stop) for stop in stops)


def test_characters_stay_whole(smollm2: Checkpoint) -> None:
    text = "Grüße 👩‍🚀 你好, naïve – done"
    detokenizer = Detokenizer(smollm2.tokenizer.backend_tokenizer)
    pieces = [detokenizer.push(token_id).text for token_id in smollm2.tokenizer.encode(text)]
    assert "".join(pieces) + detokenizer.flush() == text
    assert not any("\ufffd" in piece for piece in pieces)
    assert "" in pieces


def test_a_cut_anywhere_shows_what_decoding_the_whole_shows(smollm2: Checkpoint) -> None:
    tokenizer = smollm2.tokenizer.backend_tokenizer
    ids = smollm2.tokenizer.encode("a 👩‍🚀 你<|im_end|>")
    ends = set()
    for length in range(len(ids) + 1):
        detokenizer = Detokenizer(tokenizer)
        text = "".join(detokenizer.push(token_id).text for token_id in ids[:length]) + detokenizer.flush()
        assert text == tokenizer.decode(ids[:length], skip_special_tokens=True)
        ends.add(text[-1:])
    assert "\ufffd" in ends, "no cut fell into a character"


def test_special_tokens_are_not_shown(smollm2: Checkpoint) -> None:
    detokenizer = Detokenizer(smollm2.tokenizer.backend_tokenizer)
    ids = smollm2.tokenizer.encode("a<|im_end|>b")
    assert "".join(detokenizer.push(token_id).text for token_id in ids) == "ab"
