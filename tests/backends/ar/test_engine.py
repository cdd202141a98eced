# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Behaviour of the engine on a tiny random network: ends, choices, cancel, recompute, faults, limits."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tritone.backends.ar.engine import Engine
from tritone.backends.ar.events import Event, RequestDone, RequestFailed
from tritone.backends.ar.request import GenerationRequest, ResponseFormat, SamplingParams
from tritone.backends.ar.settings import EngineSettings
from tritone.backends.core.protocol import FinishReason
from tritone.backends.models.checkpoint import Checkpoint
from tritone.errors import Cancelled, Internal, InvalidRequest, Overloaded, TritoneError

PROMPT = [10, 20, 30, 40, 50]
SAMPLED: dict[str, Any] = {"temperature": 1.0, "seed": 11, "max_tokens": 40, "ignore_eos": True}


@pytest.fixture(scope="module")
def checkpoint(tiny_llama: Path) -> Checkpoint:
    return Checkpoint.resolve(str(tiny_llama))


@pytest.fixture(scope="module")
def alone(checkpoint: Checkpoint, drive: Any) -> list[int]:
    """The sampled request by itself."""
    tokens: list[int] = drive(checkpoint).generate(PROMPT, **SAMPLED)
    assert len(tokens) == 40
    return tokens


def test_a_sampled_request_is_the_same_in_any_company(checkpoint: Checkpoint, drive: Any, alone: list[int]) -> None:
    driver = drive(checkpoint)
    others = [driver.submit([i, i + 1, i + 2], max_tokens=10 + i, temperature=1.0, seed=i) for i in range(7)]
    mine = driver.submit(PROMPT, **SAMPLED)
    for _ in range(5):
        driver.engine.step()
    driver.engine.cancel(others[3])
    driver.run()
    assert driver.tokens(mine) == alone
    failed = driver.end(others[3])
    assert isinstance(failed, RequestFailed) and isinstance(failed.error, Cancelled)


def test_a_recomputed_request_continues_as_if_nothing_had_happened(
    checkpoint: Checkpoint, drive: Any, alone: list[int]
) -> None:
    # 16 blocks of 4 tokens: two rows of 45 tokens do not fit together.
    driver = drive(checkpoint, num_blocks=16, block_tokens=4, context_tokens=60)
    first = driver.submit([1, 2, 3], max_tokens=45, ignore_eos=True, temperature=1.0, seed=5)
    mine = driver.submit(PROMPT, **SAMPLED)
    driver.run()
    assert driver.engine.statistics().recomputes > 0
    assert driver.tokens(mine) == alone
    assert len(driver.tokens(first)) == 45
    texts = [driver.text(request_id) for request_id in (first, mine)]
    assert all(texts)


def test_reserved_rows_are_never_put_back(checkpoint: Checkpoint, drive: Any, alone: list[int]) -> None:
    driver = drive(checkpoint, num_blocks=16, block_tokens=4, context_tokens=60, reserve_full_kv=True)
    driver.submit([1, 2, 3], max_tokens=45, ignore_eos=True)
    mine = driver.submit(PROMPT, **SAMPLED)
    driver.run()
    assert driver.engine.statistics().recomputes == 0
    assert driver.tokens(mine) == alone


@pytest.mark.parametrize("prefix_caching", [True, False])
def test_choices_share_the_prompt_and_differ(checkpoint: Checkpoint, drive: Any, prefix_caching: bool) -> None:
    driver = drive(checkpoint, block_tokens=4, prefix_caching=prefix_caching)
    prompt = list(range(30, 50))
    mine = driver.submit(prompt, n=3, **SAMPLED)
    driver.run()
    choices = [tuple(driver.tokens(mine, index)) for index in range(3)]
    assert len(set(choices)) == 3
    assert driver.generate(prompt, **SAMPLED) == list(choices[0])
    done = driver.end(mine)
    assert isinstance(done, RequestDone)
    assert (done.prompt_tokens, done.completion_tokens, done.cached_tokens) == (20, 120, 0)
    assert driver.engine.statistics().prefix_hits >= 2


def test_the_prefix_cache_reports_what_it_saved(checkpoint: Checkpoint, drive: Any) -> None:
    driver = drive(checkpoint, block_tokens=4)
    prompt = list(range(30, 50))
    first, second = (driver.submit(prompt) for _ in range(2))
    driver.run()
    third = driver.submit(prompt)
    driver.run()
    ends = [driver.end(request_id) for request_id in (first, second, third)]
    # The last prompt token is always computed, so of five full blocks four are taken from the cache.
    assert [end.cached_tokens for end in ends if isinstance(end, RequestDone)] == [0, 0, 16]
    assert driver.tokens(first) == driver.tokens(second) == driver.tokens(third)


def test_a_length_end_shows_all_text_a_cut_character_too(checkpoint: Checkpoint, drive: Any) -> None:
    driver = drive(checkpoint)
    requests = [driver.submit(PROMPT, **SAMPLED | {"max_tokens": length}) for length in range(1, 24)]
    driver.run()
    texts = [driver.text(request) for request in requests]
    decode = checkpoint.tokenizer.backend_tokenizer.decode
    assert texts == [decode(driver.tokens(request), skip_special_tokens=True) for request in requests]
    assert any(text.endswith("\ufffd") for text in texts)


def test_stop_string_token_and_length(checkpoint: Checkpoint, drive: Any) -> None:
    driver = drive(checkpoint)
    tokens = driver.generate(PROMPT, max_tokens=30, ignore_eos=True)
    text = checkpoint.tokenizer.decode(tokens)
    stop = text[8:11]
    cut = text.index(stop)

    by_text = driver.submit(PROMPT, max_tokens=30, ignore_eos=True, stop=(stop,))
    shown = driver.submit(PROMPT, max_tokens=30, ignore_eos=True, stop=(stop,), include_stop_str_in_output=True)
    by_token = driver.submit(PROMPT, max_tokens=30, ignore_eos=True, stop_token_ids=(tokens[7],))
    by_length = driver.submit(PROMPT, max_tokens=3, ignore_eos=True, stop=("no such text",))
    driver.run()
    assert driver.text(by_text) == text[:cut]
    assert driver.text(shown) == text[: cut + len(stop)]
    assert driver.chunks(by_text)[-1].finish_reason is FinishReason.STOP
    assert driver.tokens(by_token) == tokens[: tokens.index(tokens[7]) + 1]
    assert driver.chunks(by_token)[-1].finish_reason is FinishReason.STOP
    assert driver.tokens(by_length) == tokens[:3]
    assert driver.chunks(by_length)[-1].finish_reason is FinishReason.LENGTH
    for request_id in (by_text, shown, by_token, by_length):
        assert [chunk.finish_reason is not None for chunk in driver.chunks(request_id)].count(True) == 1


def test_min_tokens_holds_the_end_back(checkpoint: Checkpoint, drive: Any) -> None:
    driver = drive(checkpoint)
    bias = {256: 100.0}
    assert driver.generate(PROMPT, logit_bias=bias, max_tokens=9) == [256]
    held = driver.generate(PROMPT, logit_bias=bias, max_tokens=9, min_tokens=4)
    assert len(held) == 5 and held[-1] == 256 and 256 not in held[:-1]


@pytest.mark.parametrize("min_tokens", [15, 30])
def test_a_stop_string_before_min_tokens_is_text_like_any_other(
    checkpoint: Checkpoint, drive: Any, min_tokens: int
) -> None:
    driver = drive(checkpoint)
    plain = {"max_tokens": 30, "ignore_eos": True}
    whole = checkpoint.tokenizer.decode(driver.generate(PROMPT, **plain))
    early = driver.submit(PROMPT, **plain, stop=(whole[2:4],), min_tokens=min_tokens)
    driver.run()
    shown = driver.text(early)
    assert whole[:4] == shown[:4] and whole.startswith(shown)
    ended_early = driver.chunks(early)[-1].finish_reason is FinishReason.STOP
    assert shown == whole or (ended_early and whole[len(shown) :].startswith(whole[2:4]))


def test_logprobs(checkpoint: Checkpoint, drive: Any) -> None:
    driver = drive(checkpoint)
    mine = driver.submit(PROMPT, logprobs=True, top_logprobs=3, max_tokens=4)
    driver.run()
    for chunk in driver.chunks(mine):
        assert chunk.logprobs is not None
        (entry,) = chunk.logprobs
        assert entry.id == chunk.token_ids[0] == entry.top[0].id
        assert entry.logprob == entry.top[0].logprob <= 0.0
        assert [t.logprob for t in entry.top] == sorted((t.logprob for t in entry.top), reverse=True)


@pytest.mark.parametrize("poison", [{"temperature": 1e-46}, {"repetition_penalty": 1e-46}])
def test_a_row_whose_numbers_overflow_fails_alone(checkpoint: Checkpoint, drive: Any, poison: dict[str, Any]) -> None:
    driver = drive(checkpoint)
    expected = driver.generate(PROMPT, **SAMPLED)
    neighbour = driver.submit(PROMPT, **SAMPLED)
    # Below what a request may ask for: the engine must not depend on that.
    poisoned = driver.submit(PROMPT, **{"temperature": 1.0, "max_tokens": 8, **poison})
    driver.run()
    assert isinstance(driver.end(poisoned), RequestFailed)
    assert driver.tokens(neighbour) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"type": "object", "patternProperties": {f"^p{i}.*$": {"type": "string"} for i in range(1000)}},
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused(
    checkpoint: Checkpoint, drive: Any, schema: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        drive(checkpoint).submit(PROMPT, response_format=ResponseFormat("json_schema", schema))
    assert caught.value.field == "response_format"


def test_guided_json_has_little_white_space(checkpoint: Checkpoint, drive: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "x-guidance": {"whitespace_flexible": True, "whitespace_pattern": r"[ \n]*"},
    }
    driver = drive(checkpoint)
    # White space alone is wanted, so all that the grammar allows is written.
    bias = {token: 50.0 for token in (checkpoint.tokenizer.encode(c)[0] for c in (" ", "\n"))}
    mine = driver.submit(
        PROMPT, response_format=ResponseFormat("json_schema", schema), logit_bias=bias, max_tokens=300, seed=1
    )
    driver.run()
    text = driver.text(mine)
    assert "\n" + " " * 25 not in text and "\n\n" not in text and text.count("\n") <= 6


def test_guided_json(checkpoint: Checkpoint, drive: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    driver = drive(checkpoint)
    shaped = {"response_format": ResponseFormat("json_schema", schema), "max_tokens": 200, "temperature": 1.0}
    mine = [driver.submit(PROMPT, seed=seed, **shaped) for seed in range(3)]
    driver.run()
    for request_id in mine:
        value = json.loads(driver.text(request_id))
        assert 0 <= value["a"] <= 99 and value["b"] in ("x", "y")
        assert driver.chunks(request_id)[-1].finish_reason is FinishReason.STOP
    with pytest.raises(InvalidRequest) as caught:
        driver.submit(PROMPT, response_format=ResponseFormat("json_schema", {"type": "nonsense"}))
    assert caught.value.field == "response_format"


@pytest.mark.parametrize(
    ("prompt", "sampling", "n", "field"),
    [
        ([], {}, 1, "prompt"),
        ([5, 272], {}, 1, "input_ids"),
        ([-1], {}, 1, "input_ids"),
        ([1], {"logit_bias": {272: 1.0}}, 1, "logit_bias"),
        ([1], {"stop_token_ids": (999,)}, 1, "stop_token_ids"),
        ([1], {}, 17, "n"),
        ([1] * 512, {}, 1, "messages"),
        ([1] * 500, {"max_tokens": 13}, 1, "max_tokens"),
        ([1] * 500, {"max_tokens": None, "min_tokens": 13}, 1, "min_tokens"),
    ],
)
def test_what_the_checkpoint_cannot_do_is_refused(
    checkpoint: Checkpoint, drive: Any, prompt: list[int], sampling: dict[str, Any], n: int, field: str
) -> None:
    driver = drive(checkpoint)
    with pytest.raises(InvalidRequest) as caught:
        driver.submit(prompt, n=n, **sampling)
    assert caught.value.field == field
    assert len(driver.generate(PROMPT, max_tokens=2, ignore_eos=True)) == 2


def test_a_full_queue_refuses_and_recovers(checkpoint: Checkpoint, drive: Any) -> None:
    driver = drive(checkpoint, max_waiting=2, max_rows=1)
    # One for the free row, two that wait.
    accepted = [driver.submit(PROMPT) for _ in range(3)]
    with pytest.raises(Overloaded) as caught:
        driver.submit(PROMPT)
    assert caught.value.retry_after_s is not None
    driver.run()
    assert all(isinstance(driver.end(request_id), RequestDone) for request_id in accepted)
    driver.generate(PROMPT)


@pytest.mark.parametrize("steps_before", [0, 1, 3, 8])
def test_cancel_frees_at_the_next_step(checkpoint: Checkpoint, drive: Any, steps_before: int) -> None:
    driver = drive(checkpoint, max_step_tokens=8)
    mine = driver.submit(list(range(40)), n=2, max_tokens=100, ignore_eos=True)
    for _ in range(steps_before):
        driver.engine.step()
    driver.engine.cancel(mine)
    driver.engine.cancel(mine)
    driver.engine.cancel(12345)
    driver.engine.step()
    statistics = driver.engine.statistics()
    assert (statistics.kv_blocks_used, statistics.running_rows, statistics.waiting_requests) == (0, 0, 0)
    end = driver.end(mine)
    assert isinstance(end, RequestFailed) and isinstance(end.error, Cancelled)
    driver.run()


def test_a_poisoned_row_fails_alone(checkpoint: Checkpoint, drive: Any, alone: list[int]) -> None:
    driver = drive(checkpoint)
    mine = driver.submit(PROMPT, **SAMPLED)
    poisoned = driver.submit([1, 2], max_tokens=30, ignore_eos=True)
    for _ in range(4):
        driver.engine.step()
    # The detokenizer of one row breaks in the middle.
    broken = next(row for row in driver.engine._scheduler.running if row.request_id == poisoned)
    broken.detokenizer = None
    driver.run()
    end = driver.end(poisoned)
    assert isinstance(end, RequestFailed) and isinstance(end.error, Internal)
    assert driver.tokens(mine) == alone


def test_a_model_fault_fails_the_step_and_the_loop_goes_on(
    checkpoint: Checkpoint, drive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = drive(checkpoint)
    mine = [driver.submit(PROMPT) for _ in range(2)]

    def fault(*_: Any) -> torch.Tensor:
        raise RuntimeError("/secret/path: CUDA error")

    monkeypatch.setattr(driver.engine._runner, "run", fault)
    driver.engine.step()
    monkeypatch.undo()
    driver.run()
    for request_id in mine:
        end = driver.end(request_id)
        assert isinstance(end, RequestFailed) and isinstance(end.error, Internal)
        assert "secret" not in end.error.message
    assert len(driver.generate(PROMPT, max_tokens=3, ignore_eos=True)) == 3


def test_not_a_number_is_an_error_not_a_token(
    checkpoint: Checkpoint, drive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = drive(checkpoint)
    run = driver.engine._runner.run

    def poison(batch: Any) -> torch.Tensor:
        logits: torch.Tensor = run(batch)
        logits[0, 5] = float("nan")
        return logits

    monkeypatch.setattr(driver.engine._runner, "run", poison)
    greedy, sampled = driver.submit(PROMPT), driver.submit(PROMPT, temperature=1.0, seed=1)
    driver.engine.step()
    monkeypatch.undo()
    driver.run()
    assert isinstance(driver.end(greedy), RequestFailed)
    assert isinstance(driver.end(sampled), RequestDone)


def test_the_thread_serves_submits_from_many_threads(checkpoint: Checkpoint, alone: list[int]) -> None:
    events: list[Event] = []
    engine = Engine(checkpoint, EngineSettings(device="cpu", max_rows=4, max_waiting=64, num_threads=1), events.extend)
    engine.start()
    errors: list[TritoneError] = []

    def submit() -> None:
        try:
            engine.submit(GenerationRequest(tuple(PROMPT), SamplingParams(**SAMPLED)))
        except TritoneError as error:
            errors.append(error)

    threads = [threading.Thread(target=submit) for _ in range(12)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while sum(isinstance(event, RequestDone) for event in events) < 12 and time.monotonic() < deadline:
        time.sleep(0.01)
    before = engine.statistics().heartbeat_s
    time.sleep(1.2)
    assert engine.statistics().heartbeat_s > before, "an idle engine still beats"
    long = engine.submit(GenerationRequest(tuple(PROMPT), SamplingParams(max_tokens=400, ignore_eos=True)))
    engine.stop(5.0)
    assert not errors
    for request_id in range(12):
        chunks = [e for e in events if e.request_id == request_id and not isinstance(e, RequestDone | RequestFailed)]
        assert [token for chunk in chunks for token in chunk.token_ids] == alone
    assert isinstance(events[-1], RequestFailed) and events[-1].request_id == long
    with pytest.raises(Overloaded):
        engine.submit(GenerationRequest(tuple(PROMPT)))
