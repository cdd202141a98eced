# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation: they import, their requests are valid, and the example pipeline works."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from doubles.fake_triton import PbUtils, Request, initialize_args

from tritone.backends.ar.request import parse_request
from tritone.backends.core.decoupled_model import DecoupledModel
from tritone.ensembles.render import BuildRequest, CheckpointFacts, plan

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
CLIENTS = sorted(EXAMPLES.glob("*.py"))
ECHO = EXAMPLES / "echo_pipeline"


def load(path: Path) -> ModuleType:
    """Import a file that belongs to no package."""
    name = f"example_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


@pytest.mark.parametrize("path", CLIENTS, ids=lambda path: path.name)
def test_clients_import_and_have_a_main(path: Path) -> None:
    assert callable(load(path).main)


def test_perf_analyzer_input_is_valid() -> None:
    entries = json.loads((EXAMPLES / "perf_input.json").read_text())["data"]
    assert entries
    for entry in entries:
        [params] = entry["params"]
        assert parse_request(json.loads(params)).sampling.ignore_eos


def test_triton_clients_send_valid_params() -> None:
    parse_request(load(EXAMPLES / "triton_cancel.py").ENDLESS)


@pytest.fixture
def speaker() -> Iterator[DecoupledModel]:
    module = load(ECHO / "stage.py")

    class Stage(module.EchoStage):  # type: ignore[name-defined, misc]
        pb_utils = PbUtils()

    stage: DecoupledModel = Stage()
    stage.initialize(initialize_args({"delay_ms": 20}, "echo_speaker"))
    yield stage
    stage.finalize()


def ask(stage: DecoupledModel, params: dict[str, Any]) -> Request:
    request = Request(params)
    stage.execute([request])
    return request


def test_the_example_stage_says_the_prompt_back(speaker: DecoupledModel) -> None:
    request = ask(speaker, {"prompt": "one two  three", "accept": True})
    assert request.sender.ended.wait(5)
    assert "".join(request.sender.values("text")) == "one two  three"
    kinds = request.sender.values("chunk_kind")
    assert kinds[0] == "accepted" and kinds[-1] == "done"
    assert request.sender.values("chunk_index") == list(range(len(kinds)))
    assert request.sender.values("finish_reason") == ["stop"]


def test_the_example_stage_refuses_and_goes_on(speaker: DecoupledModel) -> None:
    request = ask(speaker, {"prompt": 5})
    assert request.sender.errors()[0]["field"] == "prompt"
    assert ask(speaker, {"prompt": "next"}).sender.ended.wait(5)


def test_the_example_stage_can_be_cancelled(speaker: DecoupledModel) -> None:
    request = ask(speaker, {"prompt": "word " * 1000})
    request.sender.is_cancelled_by_client = True
    assert request.sender.ended.wait(5)
    assert request.sender.errors()[0]["code"] == "cancelled"
    assert request.sender.finals == 1


def test_the_example_pipeline_renders() -> None:
    facts = CheckpointFacts(context_tokens=128, vocab_size=10, chat_template=False, tool_format=None)
    build = plan(BuildRequest(pipeline=ECHO), lambda reference: facts)
    assert [model.name for model in build.models] == ["echo_speaker", "echo"]
    settings = json.loads(build.models[0].parameters["tritone_settings"])
    assert settings["delay_ms"] == 100


def test_the_example_pipeline_names_its_own_classes() -> None:
    pipeline = yaml.safe_load((ECHO / "pipeline.yaml").read_text())
    for entry, path in (
        (pipeline["stages"]["speaker"], ECHO / "stage.py"),
        (pipeline["orchestrator"], ECHO / "orchestrator.py"),
    ):
        assert hasattr(load(path), entry["class"].rpartition(".")[2])
