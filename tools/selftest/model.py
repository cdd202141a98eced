# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Copied into the run directory as the model `tritone_selftest`; never imported by us."""

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Sends back what it received, rebuilt from NumPy arrays as every stage builds its outputs.

    Inputs and outputs
      text    string [*]
      values  fp32 [*]
    """

    def execute(self, requests: list[Any]) -> list[Any]:
        """Triton's entry."""
        return [self._echo(request) for request in requests]

    def _echo(self, request: Any) -> Any:
        text = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
        values = pb_utils.get_input_tensor_by_name(request, "values").as_numpy()
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("text", np.array([bytes(entry) for entry in text], dtype=np.object_)),
                pb_utils.Tensor("values", np.array(values, dtype=np.float32)),
            ]
        )
