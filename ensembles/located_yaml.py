# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Read a YAML mapping and remember in which file and on which line every value stands.

Knows nothing of pipelines. Plain YAML only (`safe_load`'s types); a key given twice is an error, because YAML itself
would silently keep the second.

A located tree is a dict of dicts whose leaves are `Sourced`: scalars and lists are leaves, mappings are branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tritone.ensembles.problems import BuildError


class Sourced(NamedTuple):
    """A value and the place that gave it: `file:line`, or words such as "command line"."""

    value: Any
    origin: str


Tree = Mapping[str, "Tree | Sourced"]


def read_located(path: Path) -> dict[str, Any]:
    """The located tree of the file at `path`. The origin of a value is `<file name>:<line>`."""
    label = f"{path.parent.name}/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"cannot read {path}", [str(error)]) from None
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise BuildError(f"{label} is not usable", ["expected a mapping of keys to values at the top level"])
        problems: list[str] = []
        tree = _branch(loader, node, label, problems)
    except yaml.YAMLError as error:
        raise BuildError(f"{label} is not valid YAML", [" ".join(str(error).split())]) from None
    finally:
        loader.dispose()
    if problems:
        raise BuildError(f"{label} is not usable", problems)
    return tree


def _branch(loader: yaml.SafeLoader, node: yaml.MappingNode, label: str, problems: list[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            problems.append(f"{label}:{line}: the key {key!r} is not text")
            continue
        if key in tree:
            problems.append(f"{label}:{line}: the key {key!r} is given twice")
            continue
        if isinstance(value_node, yaml.MappingNode):
            tree[key] = _branch(loader, value_node, label, problems)
        else:
            tree[key] = Sourced(loader.construct_object(value_node, deep=True), f"{label}:{line}")
    return tree


def plain(tree: Tree | Sourced) -> Any:
    """The same values without their origins."""
    if isinstance(tree, Sourced):
        return tree.value
    return {key: plain(value) for key, value in tree.items()}


def leaves(tree: Tree, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Sourced]]:
    """Every leaf with its key path, in the order of the files."""
    for key, value in tree.items():
        if isinstance(value, Sourced):
            yield (*prefix, key), value
        else:
            yield from leaves(value, (*prefix, key))


def origin_of(tree: Tree | Sourced) -> str:
    """Where `tree` was given: its own place, or that of its first leaf."""
    if isinstance(tree, Sourced):
        return tree.origin
    return next((leaf.origin for _, leaf in leaves(tree)), "an empty mapping")
