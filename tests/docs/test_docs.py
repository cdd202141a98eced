# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The documentation says what is there: links, paths, targets, commands, options, variables, settings, code."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from tritone.backends.ar.settings import EngineSettings
from tritone.gateway.routes import chat, chat_batch, completions, health, models
from tritone.gateway.schemas.chat import ChatBatchRequest, ChatRequest
from tritone.gateway.schemas.completions import CompletionRequest
from tritone.tools.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "docs" / "examples").rglob("*.py"))
ROOMS = "kernels|backends|ensembles|gateway|model_repository|tools|tests|docs|src"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(rf"(?<![\w./:$-])(?:\./)?((?:{ROOMS})/[\w./*-]*)(?![\w<])")
MODULE = re.compile(r"(?<![\w./-])tritone(?:\.[a-zA-Z_]+)+(?![\w/])")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(match[1], match[2]) for match in FENCE.finditer(page.read_text())]


def code_of(page: Path) -> Iterator[str]:
    """Everything set as code: fenced blocks line by line, and inline spans."""
    text = page.read_text()
    for block in blocks(page):
        yield from block.text.replace("\\\n", " ").splitlines()
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def commands() -> dict[str, Any]:
    """The subcommands of `tritone` by name, as click's commands."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_exist(page: Path) -> None:
    missing = []
    for name in PATH.findall(page.read_text()):
        name = name.rstrip(".")
        if not (list(ROOT.glob(name)) if "*" in name else (ROOT / name).exists()):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_dotted_names_exist(page: Path) -> None:
    missing = []
    for name in MODULE.findall(page.read_text()):
        parts = name.split(".")
        if parts[1] == "gateway" and len(parts) == 3 and not (ROOT / "gateway" / f"{parts[2]}.py").exists():
            continue  # a logger's name
        module, attribute = name, ""
        if importlib.util.find_spec(".".join(parts[:2])) and not _is_module(name):
            module, _, attribute = name.rpartition(".")
        if not _is_module(module) or (attribute and not hasattr(importlib.import_module(module), attribute)):
            missing.append(name)
    assert not missing


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for code in code_of(page) for name in re.findall(r"(?:^|&& )make ([a-z-]+)", code)}
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_their_options_exist(page: Path) -> None:
    known = commands()
    wrong = []
    for code in code_of(page):
        match = re.search(r"(?:^|[ (/])tritone ([a-z]+)(.*)", code)
        if match is None:
            continue
        command = known.get(match[1])
        if command is None:
            wrong.append(code)
            continue
        options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        # What follows a pipe, a quote or a bracket is another command's.
        given = re.findall(r"(?<!\S)--[a-z-]+", re.split(r"[|)#]", match[2])[0])
        wrong += [f"{code}: {option}" for option in given if option not in options]
    assert not wrong


def test_variables_are_in_the_table() -> None:
    table = (ROOT / "docs" / "ENV.md").read_text()
    documented = set(re.findall(r"`(TRITONE_[A-Z0-9_]+)`", table))
    used = {
        name
        for page in [*PAGES, *EXAMPLES, ROOT / "Makefile"]
        for name in re.findall(r"\bTRITONE_[A-Z0-9_]*[A-Z0-9]\b", page.read_text())
    }
    assert used <= documented


def test_the_api_page_has_every_field_and_route() -> None:
    page = (ROOT / "docs" / "API.md").read_text()
    named = set(re.findall(r"`([a-z_]+)(?:[.:][^`]*)?`", page))
    known = {name for schema in (ChatRequest, ChatBatchRequest, CompletionRequest) for name in schema.model_fields}
    assert known <= named
    paths = (chat.PATH, chat_batch.PATH, completions.PATH, models.LIST_PATH, models.ONE_PATH)
    probes = (health.LIVE_PATH, health.READY_PATH, health.HEALTH_PATH, health.METRICS_PATH)
    assert {f" {path}`" for path in (*paths, *probes) if f" {path}`" not in page} == set()


def test_the_settings_table_is_the_engines() -> None:
    rows = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", (ROOT / "docs" / "OPERATIONS.md").read_text(), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    assert {field.name for field in fields(EngineSettings)} <= documented


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_are_parts_of_examples(page: Path) -> None:
    sources = [example.read_text() for example in EXAMPLES]
    drifted = [
        block.text
        for block in blocks(page)
        if block.language == "python" and not any(is_part(block.text, source) for source in sources)
    ]
    assert not drifted


def is_part(code: str, source: str) -> bool:
    """Whether `code` stands in `source`, perhaps further to the right."""
    flush = textwrap.dedent(code)
    return any(textwrap.indent(flush, "    " * depth) in source for depth in range(4))
