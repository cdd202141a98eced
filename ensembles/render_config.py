# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Write the two files of a Triton model: `config.pbtxt` and `1/model.py`.

Knows the text formats only; what the values are is decided in `render.py`. The config is complete, so that the
server's auto-completion can stay off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tritone.ensembles.protocol import TensorSpec

HEADER = "# SPDX-FileCopyrightText: 2026 The Tritone authors\n# SPDX-License-Identifier: Apache-2.0\n"
GENERATED = "# Rendered by `tritone build`; edit the pipeline or its profile instead.\n"


@dataclass(frozen=True)
class Model:
    """One model of the rendered repository."""

    name: str
    class_path: str
    summary: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    kind: str  # "cpu" or "gpu"
    gpus: tuple[int, ...]  # empty: Triton chooses
    parameters: Mapping[str, str]


def config_text(model: Model) -> str:
    """`config.pbtxt` of `model`."""
    place = f"kind: KIND_{model.kind.upper()}"
    if model.gpus:
        place += f" gpus: [{', '.join(map(str, model.gpus))}]"
    blocks = [
        f"name: {_quoted(model.name)}\n"
        'backend: "python"\n'
        "max_batch_size: 0\n"
        "model_transaction_policy { decoupled: true }\n"
        f"instance_group [{{ count: 1 {place} }}]",
        _tensors("input", model.inputs),
        _tensors("output", model.outputs),
        "\n".join(
            f"parameters {{ key: {_quoted(key)} value {{ string_value: {_quoted(value)} }} }}"
            for key, value in model.parameters.items()
        ),
    ]
    return HEADER + GENERATED + "\n".join(blocks) + "\n"


def _tensors(field: str, specs: tuple[TensorSpec, ...]) -> str:
    rows = []
    for spec in specs:
        dims = ", ".join(map(str, spec.dims))
        optional = " optional: true" if spec.optional and field == "input" else ""
        rows.append(
            f"  # {spec.meaning}\n"
            f"  {{ name: {_quoted(spec.name)} data_type: {spec.data_type} dims: [{dims}]{optional} }}"
        )
    return f"{field} [\n" + ",\n".join(rows) + "\n]"


def _quoted(text: str) -> str:
    """A protobuf text-format string: of JSON's escapes those of quote and backslash mean the same there."""
    if not text.isprintable():
        raise ValueError(f"{text!r} cannot stand in a model config")
    return json.dumps(text, ensure_ascii=False)


def model_text(model: Model) -> str:
    """`1/model.py` of `model`: the tensor contract and the class that does the work."""
    module, _, base = model.class_path.rpartition(".")
    rows = [("Inputs", model.inputs), ("Outputs", model.outputs)]
    contract = "\n".join(f"    {title}\n" + "\n".join(map(_contract_row, specs)) for title, specs in rows)
    return (
        f"{HEADER}"
        f'"""{model.name}: {model.summary}"""\n\n'
        f"{GENERATED}\n"
        "import triton_python_backend_utils as pb_utils\n\n"
        f"from {module} import {base}\n\n\n"
        f"class TritonPythonModel({base}):\n"
        f'    """{model.summary}\n\n{contract}\n    """\n\n'
        "    pb_utils = pb_utils\n"
    )


def _contract_row(spec: TensorSpec) -> str:
    shape = "[" + ", ".join("*" if size < 0 else str(size) for size in spec.dims) + "]"
    kind = spec.data_type.removeprefix("TYPE_").lower()
    optional = " (optional)" if spec.optional else ""
    return f"      {spec.name:<14} {kind} {shape}{optional}: {spec.meaning}"
