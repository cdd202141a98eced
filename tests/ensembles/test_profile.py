# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles: how they merge, what they inherit, and that every fault of a file is told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone.ensembles.located_yaml import Sourced, leaves, plain, read_located
from tritone.ensembles.problems import BuildError
from tritone.ensembles.profile import load_profile, merge

EXAMPLE = Path(__file__).parent / "example_pipeline" / "profiles"

KEYS = st.sampled_from("abc")
SCALARS = st.one_of(st.integers(0, 3), st.booleans(), st.lists(st.integers(0, 2), max_size=2))
LEAVES = st.builds(Sourced, SCALARS, st.sampled_from(["low", "high"]))
LEAVES_OR_NULL = st.one_of(LEAVES, st.just(Sourced(None, "high")))


def trees(values: st.SearchStrategy[Sourced]) -> st.SearchStrategy[dict[str, Any]]:
    return st.recursive(
        st.dictionaries(KEYS, values, max_size=3),
        lambda below: st.dictionaries(KEYS, st.one_of(values, below), max_size=3),
        max_leaves=8,
    )


def reference_merge(base: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """The rule on plain values, written another way: key by key over the union."""
    result: dict[str, Any] = {}
    for key in [*base, *(key for key in overlay if key not in base)]:
        if key not in overlay:
            result[key] = base[key]
        elif isinstance(overlay[key], dict):
            below = base.get(key)
            result[key] = reference_merge(below if isinstance(below, dict) else {}, overlay[key])
        elif overlay[key] is not None:
            result[key] = overlay[key]
    return result


@given(trees(LEAVES), trees(LEAVES_OR_NULL))
def test_merge_follows_the_rule(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    assert plain(merge(base, overlay)) == reference_merge(plain(base), plain(overlay))


@given(trees(LEAVES), trees(LEAVES_OR_NULL))
def test_merge_changes_neither_argument_and_shares_no_branch(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    before = (plain(base), plain(overlay))
    merged = merge(base, overlay)
    merged.clear()
    for branch in [value for value in merge(base, overlay).values() if isinstance(value, dict)]:
        branch.clear()
    assert (plain(base), plain(overlay)) == before


@given(trees(LEAVES), trees(LEAVES_OR_NULL))
def test_merging_twice_changes_nothing_more(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    once = merge(base, overlay)
    assert merge(once, overlay) == once


@given(trees(LEAVES))
def test_merge_with_nothing_is_nothing(tree: dict[str, Any]) -> None:
    assert merge(tree, {}) == tree
    assert plain(merge({}, tree)) == plain(tree)


def test_a_null_is_never_left_over() -> None:
    assert plain(merge({}, {"a": {"b": Sourced(None, "x")}, "c": Sourced(None, "x")})) == {"a": {}}


def test_inherited_values_keep_their_place() -> None:
    profile = load_profile(EXAMPLE, "fast")
    assert profile.chain == ("fast", "default")
    assert plain(profile.stages) == {
        "orchestrator": {"settings": {"max_streams": 3}},
        "reader": {"settings": {"device": "cpu"}},
        "writer": {"instance": {"kind": "gpu", "gpus": [1]}, "settings": {"device": "cuda", "max_rows": 8}},
    }
    origins = {".".join(path): leaf.origin for path, leaf in leaves(profile.stages)}
    assert origins["reader.settings.device"] == "profiles/default.yaml:7"
    assert origins["writer.settings.max_rows"] == "profiles/default.yaml:13"
    assert origins["writer.settings.device"] == "profiles/fast.yaml:11"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_a_circle_of_bases_fails(tmp_path: Path) -> None:
    write(tmp_path, a="base: b", b="base: c", c="base: a")
    with pytest.raises(BuildError, match="in a circle: a -> b -> c -> a"):
        load_profile(tmp_path, "a")


def test_a_missing_base_names_what_there_is_and_who_asked(tmp_path: Path) -> None:
    write(tmp_path, a="summary: x\nbase: nowhere", other="summary: y")
    with pytest.raises(BuildError, match=r"a\.yaml:2: no profile 'nowhere'; there are: a, other"):
        load_profile(tmp_path, "a")


def test_a_missing_profile_names_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no profile 'nowhere'; there are: none"):
        load_profile(tmp_path, "nowhere")


def test_every_fault_of_every_file_is_told(tmp_path: Path) -> None:
    base = "colour: red\norchestrator: {instance: {kind: gpu}}\n"
    base += "stages:\n  one: {instance: {kind: tpu, rack: 3, gpus: [-1]}}\n"
    top = "base: low\nsummary: [1]\nstages:\n  one: {speed: 3, settings: fast}\n  two: 5\n"
    with pytest.raises(BuildError) as caught:
        load_profile(write(tmp_path, low=base, top=top), "top")
    problems = "\n".join(caught.value.problems)
    for expected in (
        "unknown key 'colour' in a profile",
        "`kind` of stage 'one' is 'tpu'; expected cpu or gpu",
        "unknown key 'rack' in `instance` of stage 'one'",
        "`gpus` of stage 'one' must be a list of GPU numbers",
        "`summary` must be one line of text",
        "unknown key 'speed' in stage 'one'",
        "`settings` of stage 'one' must be a mapping",
        "stage 'two' must be a mapping",
        "unknown key 'instance' in the orchestrator",
    ):
        assert expected in problems
    assert len(caught.value.problems) == 9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2", "the key 'a' is given twice"),
        ("a: {b: 1, b: 2}", "the key 'b' is given twice"),
        ("- 1", "expected a mapping"),
        ("", "expected a mapping"),
        ("a: [1", "not valid YAML"),
        ("a: !!python/name:os.system", "not valid YAML"),
        ("1: 2", "the key 1 is not text"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
    ],
)
def test_unusable_yaml(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(BuildError, match=expected):
        read_located(write(tmp_path, file=text) / "file.yaml")


def test_a_missing_file_is_a_build_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot read"):
        read_located(tmp_path / "nothing.yaml")
