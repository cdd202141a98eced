# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Reads single tensors of a folder of safetensors files, indexed or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from tritone.errors import InvalidRequest

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"


class SafetensorsFolder:
    """The tensors of one checkpoint folder. Files are opened on first use and read one tensor at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Any] = {}
        index = folder / INDEX_FILE
        if index.is_file():
            self._files: dict[str, str] = dict(json.loads(index.read_text())["weight_map"])
        else:
            self._files = {name: SINGLE_FILE for name in self._opened(SINGLE_FILE).keys()}

    def read(self, name: str) -> torch.Tensor:
        """The tensor `name` on the CPU; raises KeyError where the folder has none."""
        tensor: torch.Tensor = self._opened(self._files[name]).get_tensor(name)
        return tensor

    def _opened(self, file_name: str) -> Any:
        from safetensors import safe_open

        if file_name not in self._open:
            path = self._folder / file_name
            # An index must not lead out of its folder.
            if Path(file_name).name != file_name or not path.is_file():
                raise InvalidRequest(f"the checkpoint has no file {file_name!r}", field="checkpoint")
            self._open[file_name] = safe_open(str(path), framework="pt")
        return self._open[file_name]
