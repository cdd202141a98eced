# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What a command line means: which repository is served, with which models and settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritone.ensembles.render import CheckpointFacts, write_repository
from tritone.tools import pipelines
from tritone.tools.pipelines import build_pipeline, known_pipelines, parse_settings
from tritone.tools.problems import LaunchError
from tritone.tools.serving import render_for_run


@pytest.fixture(autouse=True)
def facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "read_facts", lambda _: CheckpointFacts(128, 1000, True, None))


def test_a_rendered_run(tmp_path: Path) -> None:
    said: list[str] = []
    chosen = render_for_run(
        tmp_path, ["smollm2_chat"], served_name="small", settings=["thinker.max_rows=3"], progress=said.append
    )
    assert chosen.models == ("small_thinker", "small") and chosen.served == ("small",)
    assert '\\"max_rows\\":3' in (chosen.repository / "small_thinker" / "config.pbtxt").read_text()
    assert said == ["rendering smollm2_chat …"]


def test_without_a_name_every_pipeline_is_served(tmp_path: Path) -> None:
    assert render_for_run(tmp_path, []).served == tuple(known_pipelines())


def test_a_repository_is_served_as_it_stands(tmp_path: Path) -> None:
    repository = tmp_path / "held"
    twin = build_pipeline("smollm2_chat", served_name="smollm2_chat_twin")
    write_repository([build_pipeline("smollm2_chat"), twin], repository)
    (repository / "stranger").mkdir()
    (repository / "stranger" / "config.pbtxt").write_text('name: "stranger"\nbackend: "python"\n')
    everything = render_for_run(tmp_path, [], repository=repository)
    assert everything.repository == repository
    assert set(everything.models) == {
        "smollm2_chat", "smollm2_chat_thinker", "smollm2_chat_twin", "smollm2_chat_twin_thinker", "stranger",
    }  # fmt: skip
    assert everything.served == ("smollm2_chat", "smollm2_chat_twin")
    one = render_for_run(tmp_path, ["smollm2_chat"], repository=repository)
    assert one.models == ("smollm2_chat", "smollm2_chat_thinker")
    with pytest.raises(LaunchError, match="holds no nothing"):
        render_for_run(tmp_path, ["nothing"], repository=repository)


def test_a_broken_config_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.pbtxt").write_text("name: [")
    with pytest.raises(LaunchError, match="is not a model config"):
        render_for_run(tmp_path, [], repository=tmp_path)


def test_settings_are_json_or_words() -> None:
    parsed = parse_settings(["a.x=3", "a.y=true", "a.z=cuda", 'b.x="7"', "b.y=null", "b.z=a=b"])
    assert parsed == {"a": {"x": 3, "y": True, "z": "cuda"}, "b": {"x": "7", "y": None, "z": "a=b"}}
    for wrong in ("x=3", "a.x", ".x=3", "a.=3", ""):
        with pytest.raises(LaunchError, match="is not a setting"):
            parse_settings([wrong])


def test_a_relative_checkpoint_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    [stage, _] = build_pipeline("smollm2_chat", checkpoint="weights").models
    assert f'"checkpoint":"{tmp_path}/weights"' in stage.parameters["tritone_settings"]


def test_values_that_the_engine_would_refuse_fail_the_build_all_at_once() -> None:
    with pytest.raises(LaunchError) as refused:
        build_pipeline("smollm2_chat", settings=["thinker.max_rows=-4", "thinker.dtype=float99"])
    assert "max_rows is -4" in refused.value.message and "dtype is 'float99'" in refused.value.message


def test_values_that_do_not_go_together_fail_the_build() -> None:
    build_pipeline("smollm2_chat", settings=["thinker.max_rows=1000", "thinker.max_step_tokens=2048"])
    with pytest.raises(LaunchError, match="at least max_rows"):
        build_pipeline("smollm2_chat", settings=["thinker.max_rows=64", "thinker.max_step_tokens=16"])
