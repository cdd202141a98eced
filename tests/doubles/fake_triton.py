# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `triton_python_backend_utils`: tensors, responses and senders that only remember."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tritone.backends.core.link import LinkSender, StageLinks

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class Tensor:
    def __init__(self, name: str, array: np.ndarray[Any, Any]) -> None:
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> np.ndarray[Any, Any]:
        return self._array


class TritonError:
    INVALID_ARG, NOT_FOUND, UNSUPPORTED, UNAVAILABLE, CANCELLED, INTERNAL = range(6)

    def __init__(self, message: str, code: int = INTERNAL) -> None:
        self._message, self.code = message, code

    def message(self) -> str:
        return self._message


class InferenceResponse:
    def __init__(self, output_tensors: list[Tensor] | None = None, error: TritonError | None = None) -> None:
        self._tensors, self._error = output_tensors or [], error

    def output_tensors(self) -> list[Tensor]:
        return self._tensors

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> TritonError | None:
        return self._error


class Sender:
    """Remembers what was sent; refuses anything after the final response, as Triton does."""

    def __init__(self) -> None:
        self.sent: list[InferenceResponse] = []
        self.finals = 0
        self.is_cancelled_by_client = False
        self.ended = threading.Event()

    def is_cancelled(self) -> bool:
        assert not self.finals, "asking after the final response crashes the server"
        return self.is_cancelled_by_client

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        if self.finals:
            raise RuntimeError("response sender has been closed")
        if response is not None:
            self.sent.append(response)
        if flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL:
            self.finals += 1
            self.ended.set()

    def values(self, name: str) -> list[Any]:
        """The first element of every sent tensor of that name, text decoded."""
        found = []
        for response in self.sent:
            for tensor in response.output_tensors():
                if tensor.name() == name:
                    value = tensor.as_numpy().reshape(-1)[0]
                    found.append(value.decode() if isinstance(value, bytes) else value)
        return found

    def errors(self) -> list[dict[str, Any]]:
        return [json.loads(error.message()) for response in self.sent if (error := response.error()) is not None]


class Request:
    def __init__(self, params: Any, **arrays: np.ndarray[Any, Any]) -> None:
        text = params if isinstance(params, bytes) else json.dumps(params).encode()
        self.tensors = [Tensor("params", np.array([text], dtype=np.object_))]
        self.tensors += [Tensor(name, array) for name, array in arrays.items()]
        self.sender = Sender()

    def get_response_sender(self) -> Sender:
        return self.sender


class Refusal(NamedTuple):
    """What a stage that refuses a request says."""

    wire: str


Serve = Callable[[str, dict[str, Any]], Iterator[InferenceResponse] | Refusal]


class FakeStage:
    """Answers one call as a stage does: one response through Triton, the rest over the link.

    A cancel calls `serve` with `{"cancel": handle}`. When
    `serve` ends without a last chunk the process is as good as dead.
    """

    def __init__(self, serve: Serve, model: str, params: dict[str, Any]) -> None:
        self._serve, self._model, self._params = serve, model, params
        self._links = StageLinks(self._cancel)

    def answer(self, target: Any) -> Iterator[InferenceResponse]:
        responses = self._serve(self._model, self._params)
        if isinstance(responses, Refusal):
            return iter([InferenceResponse(error=TritonError(responses.wire))])
        sender = self._links.open(target, "stage-handle")
        threading.Thread(target=self._speak, args=(sender, responses), daemon=True).start()
        return iter([InferenceResponse()])

    def _cancel(self, handle: str) -> None:
        for _ in self._serve(self._model, {"cancel": handle}) or ():
            pass

    def _speak(self, sender: LinkSender, responses: Iterator[InferenceResponse]) -> None:
        for response in responses:
            arrays = {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}
            arrays.pop("chunk_index")
            kind = arrays["chunk_kind"][0]
            sender.send_arrays(arrays, is_final=kind in (b"done", b"failed"))
        self._links.close()


# The class below has attributes of these names.
_Tensor = Tensor
_Response = InferenceResponse


class PbUtils:
    """Passed to a stage in place of the module. `serve` answers BLS calls."""

    Tensor = _Tensor
    TritonError = TritonError
    InferenceResponse = _Response
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = TRITONSERVER_RESPONSE_COMPLETE_FINAL

    def __init__(self, serve: Serve | None = None) -> None:
        outer = self
        self.calls: list[tuple[str, dict[str, Any]]] = []

        class InferenceRequest:
            def __init__(
                self, model_name: str, requested_output_names: list[str], inputs: list[_Tensor], timeout: int
            ) -> None:
                self.model_name = model_name
                self.params = json.loads(inputs[0].as_numpy()[0])
                assert timeout > 0

            def exec(self, *, decoupled: bool) -> Iterator[_Response]:
                assert decoupled and serve is not None
                target = self.params.pop("link")
                outer.calls.append((self.model_name, self.params))
                return FakeStage(serve, self.model_name, self.params).answer(target)

        self.InferenceRequest = InferenceRequest

    class MetricFamily:
        COUNTER, GAUGE = "counter", "gauge"

        def __init__(self, name: str, description: str, kind: str) -> None:
            self.name = name

        def Metric(self, labels: dict[str, str]) -> Any:  # noqa: N802 - Triton's name
            return self

        def increment(self, amount: float) -> None:
            assert amount >= 0

        def set(self, value: float) -> None:
            pass

    @staticmethod
    def get_input_tensor_by_name(request: Request, name: str) -> _Tensor | None:
        return next((tensor for tensor in request.tensors if tensor.name() == name), None)


def initialize_args(settings: dict[str, Any], model_name: str = "model") -> dict[str, str]:
    """What Triton hands to `initialize`."""
    parameters = {"tritone_settings": {"string_value": json.dumps(settings)}}
    return {"model_name": model_name, "model_config": json.dumps({"parameters": parameters})}
