# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`pipeline.yaml`: what it says, and that a wrong one fails with every fault listed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tritone.ensembles import protocol
from tritone.ensembles.pipeline_file import load_pipeline, pipeline_folders
from tritone.ensembles.problems import BuildError

HERE = Path(__file__).parent
EXAMPLE: dict[str, Any] = yaml.safe_load((HERE / "example_pipeline" / "pipeline.yaml").read_text())
ENSEMBLES = HERE.parent.parent / "ensembles"


def problems_of(folder: Path, change: Callable[[dict[str, Any]], object]) -> tuple[str, ...]:
    data = copy.deepcopy(EXAMPLE)
    change(data)
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    with pytest.raises(BuildError) as caught:
        load_pipeline(folder)
    return caught.value.problems


def test_the_example_is_read() -> None:
    pipeline = load_pipeline(HERE / "example_pipeline")
    assert [stage.name for stage in pipeline.stages] == ["reader", "writer"]
    assert pipeline.stages[1].inputs == (protocol.PARAMS, protocol.TOKEN_IDS)
    assert pipeline.orchestrator.inputs == protocol.THINKER_INPUTS
    assert pipeline.orchestrator.outputs == protocol.THINKER_OUTPUTS
    assert pipeline.routes == ("chat",)


@pytest.mark.parametrize("folder", pipeline_folders(ENSEMBLES).values(), ids=lambda folder: folder.name)
def test_every_pipeline_of_ours_is_usable_and_named_as_its_folder(folder: Path) -> None:
    assert load_pipeline(folder).name == folder.name


def add_link(data: dict[str, Any], source: str, target: str, tensors: str = "TOKEN_IDS") -> None:
    data["links"].append({"from": source, "to": target, "tensors": tensors})


def make_cycle(data: dict[str, Any]) -> None:
    data["stages"]["reader"]["inputs"] = ["PARAMS", "INPUT_IDS", "TOKEN_IDS"]
    add_link(data, "writer", "reader")


WRONG: list[tuple[str, Callable[[dict[str, Any]], object], list[str]]] = [
    ("no stage", lambda d: d.update(stages={}), ["the pipeline has no stage"]),
    (
        "no final output",
        lambda d: d.update(final=[]),
        [
            "`final` must be a list with at least one entry",
            "the pipeline has no final output",
            "stage 'writer' is a dead end",
        ],
    ),
    (
        "a stage feeds itself",
        lambda d: add_link(d, "writer", "writer"),
        ["stage 'writer' feeds itself"],
    ),
    ("a cycle", make_cycle, ["the links form a cycle: "]),
    ("an unknown source", lambda d: add_link(d, "ghost", "writer"), ["starts at an unknown stage 'ghost'"]),
    ("an unknown target", lambda d: add_link(d, "reader", "ghost"), ["ends at an unknown stage 'ghost'"]),
    (
        "an unknown final stage",
        lambda d: d["final"].append({"from": "ghost", "tensors": "TEXT"}),
        ["ghost -> client starts at an unknown stage"],
    ),
    (
        "the request as final output",
        lambda d: d["final"].append({"from": "request", "tensors": "PARAMS"}),
        ["the request cannot be a final output"],
    ),
    ("an unknown key", lambda d: d.update(colour="red"), ["unknown key 'colour' in a pipeline"]),
    (
        "an unknown key of a stage",
        lambda d: d["stages"]["reader"].update(colour="red"),
        ["unknown key 'colour' in stage 'reader'"],
    ),
    (
        "an unknown capability",
        lambda d: d["capabilities"].update(colour="red"),
        ["unknown key 'colour' in `capabilities` of the pipeline"],
    ),
    ("a missing key", lambda d: d.pop("created"), ["the pipeline: `created` is missing"]),
    ("a wrong type", lambda d: d.update(created="today"), ["`created` of the pipeline must be of type int"]),
    ("a flag for a number", lambda d: d.update(created=True), ["`created` of the pipeline must be of type int"]),
    ("a bad name", lambda d: d.update(name="no good"), ["'no good' cannot be a model name"]),
    (
        "a bad class path",
        lambda d: d["stages"]["reader"].update({"class": "Reader"}),
        ["'Reader' of stage 'reader' is not `package.module.Class`"],
    ),
    (
        "unknown tensors",
        lambda d: d["stages"]["reader"].update(outputs="SMELLS"),
        ["no tensors named 'SMELLS'", "carries 'token_ids', which reader does not give"],
    ),
    (
        "a name of protocol.py that is no tensor",
        lambda d: d.update(inputs="ACCEPT_KEY"),
        ["no tensors named 'ACCEPT_KEY'", "which request does not give"],
    ),
    ("an input nobody brings", lambda d: d["links"].pop(1), ["stage 'writer' needs params, which no link brings"]),
    (
        "a link of a tensor the target does not take",
        lambda d: add_link(d, "request", "writer", "INPUT_IDS"),
        ["carries 'input_ids', which writer does not take"],
    ),
    (
        "a dead end",
        lambda d: d["links"].pop(2),
        ["stage 'reader' is a dead end", "stage 'writer' needs token_ids"],
    ),
    (
        "an incomplete link",
        lambda d: d["links"].append({"from": "reader"}),
        ["an entry of `links` needs the keys from, to, tensors; found from"],
    ),
    ("a stage called request", lambda d: d["stages"].update(request=d["stages"]["reader"]), ["'request' cannot be"]),
    (
        "a stage called orchestrator",
        lambda d: d["stages"].update(orchestrator=d["stages"]["reader"]),
        ["'orchestrator' cannot be the name of a stage"],
    ),
    ("a stage that is no mapping", lambda d: d["stages"].update(reader=3), ["stage 'reader' must be a mapping"]),
]


@pytest.mark.parametrize(("change", "expected"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_topology(tmp_path: Path, change: Callable[[dict[str, Any]], object], expected: list[str]) -> None:
    problems = problems_of(tmp_path, change)
    for part in expected:
        assert any(part in problem for problem in problems), problems


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["colour"] = "red"
        del data["summary"]
        make_cycle(data)
        add_link(data, "ghost", "writer")

    problems = "\n".join(problems_of(tmp_path, change))
    for part in ("unknown key 'colour'", "`summary` is missing", "the links form a cycle", "unknown stage 'ghost'"):
        assert part in problems


def test_faults_name_the_line(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, lambda d: d.update(colour="red"))
    assert problem.startswith(f"{tmp_path.name}/pipeline.yaml:")
