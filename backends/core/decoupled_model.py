# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""What every decoupled Triton model of ours does around its own work: settings, admission, cancel requests, end.

Knows Triton's model life cycle and the stage contract. Knows neither engines nor routing.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import os
from typing import Any, ClassVar

from tritone.backends.core import protocol
from tritone.backends.core.chunk import Chunk
from tritone.backends.core.finished_calls import FinishedCalls
from tritone.backends.core.link import StageLinks
from tritone.backends.core.live_requests import LiveRequests, mint_handle
from tritone.backends.core.metrics import StageMetrics
from tritone.backends.core.outbox import ResponseSender
from tritone.backends.core.protocol import ChunkKind
from tritone.backends.core.triton_sender import TritonSender
from tritone.errors import Internal, InvalidRequest, TritoneError

logger = logging.getLogger(__name__)

MAX_PARAMS_BYTES = 64 * 1024 * 1024


class DecoupledModel:
    """Base of stages and orchestrators.

    A subclass provides `load`, `begin`, `cancel` and `unload`. It is promised that `begin` is called from one thread,
    once per request, with parsed `params`; that a `TritoneError` raised by `begin` reaches the client as it is and
    any other exception as `Internal`; and that `cancel` is called at most once for a handle that `self.live` knows.
    It promises that every request it has begun ends with exactly one final response and leaves `self.live`.
    """

    pb_utils: ClassVar[Any]

    def initialize(self, args: dict[str, str]) -> None:
        """Triton's entry: read the settings of the model config and load. A bad setting fails the load."""
        logging.basicConfig(
            level=os.environ.get("TRITONE_LOG_LEVEL", "INFO").upper(),
            format=f"%(asctime)s {args['model_name']} %(levelname)s %(message)s",
        )
        # A crash in native code leaves the Python stacks in the server's log.
        faulthandler.enable()
        config = json.loads(args["model_config"])
        parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        self.model_name = args["model_name"]
        self.metrics = StageMetrics(self.pb_utils, self.model_name)
        self.live = LiveRequests(self.cancel)
        self.finished = FinishedCalls()
        self._stage_links = StageLinks(self.live.cancel)
        try:
            self.load(json.loads(parameters[protocol.SETTINGS_PARAMETER]), args)
        except BaseException:
            self.metrics.stop()
            raise
        self.metrics.start(self._pulse)

    def execute(self, requests: list[Any]) -> None:
        """Triton's entry: begin every request and return at once; answers come from other threads."""
        for request in requests:
            sender = TritonSender(self.pb_utils, request.get_response_sender(), self.finished)
            try:
                self._take(request, sender)
            except TritoneError as error:
                self.metrics.count("rejected_total")
                sender.send_error(error)
            except Exception:
                logger.exception("a request failed before it was accepted")
                self.metrics.count("rejected_total")
                sender.send_error(Internal("the request could not be processed"))

    def finalize(self) -> None:
        """Triton's entry: stop within five seconds."""
        self.live.stop()
        self.unload()
        self._stage_links.close()
        self.finished.clear()
        self.metrics.stop()
        # Triton's objects that wait in reference cycles must go while their shared memory is there: see
        # StageMetrics.stop.
        gc.collect()

    def load(self, settings: dict[str, Any], args: dict[str, str]) -> None:
        """Build what serves requests from the `settings` JSON of the model config."""
        raise NotImplementedError

    def begin(self, handle: str, params: dict[str, Any], request: Any, sender: ResponseSender) -> None:
        """Start one request, or raise."""
        raise NotImplementedError

    def cancel(self, handle: str) -> None:
        """Stop a request whose client has gone; return quickly."""
        raise NotImplementedError

    def unload(self) -> None:
        """End every thread and free what `load` made."""
        raise NotImplementedError

    def is_alive(self) -> bool:
        """Whether the model's own work goes on; asked once a second from another thread. Return at once."""
        return True

    def _pulse(self) -> bool:
        self.metrics.set("requests_open", len(self.live))
        return self.is_alive()

    def _take(self, request: Any, sender: TritonSender) -> None:
        params = read_params(self.pb_utils, request)
        if protocol.CANCEL_KEY in params:
            was_live = self.live.cancel(_cancel_handle(params))
            sender.send_chunk(Chunk(ChunkKind.DONE, details={"cancelled": was_live}), is_final=True)
            return
        handle = mint_handle()
        target = params.pop(protocol.LINK_KEY, None)
        if target is None:
            sender.wants_failed_chunk = bool(params.get(protocol.ACCEPT_KEY))
            self.begin(handle, params, request, sender)
            return
        linked = self._stage_links.open(target, handle)
        try:
            self.begin(handle, params, request, linked)
        except BaseException:
            linked.abandon()
            raise
        # All that the caller asks Triton for; the rest goes over the link.
        sender.send_chunk(Chunk(ChunkKind.ACCEPTED, details={"handle": handle}), is_final=True)


def read_params(pb_utils: Any, request: Any) -> dict[str, Any]:
    """The `params` JSON object of a request. Raises `InvalidRequest` on anything else."""
    tensor = pb_utils.get_input_tensor_by_name(request, protocol.PARAMS.name)
    if tensor is None:
        raise InvalidRequest("the tensor 'params' is missing", field="params")
    values = tensor.as_numpy().reshape(-1)
    if len(values) != 1:
        raise InvalidRequest(f"'params' holds {len(values)} strings, expected 1", field="params")
    return parse_params(values[0])


def parse_params(text: bytes) -> dict[str, Any]:
    """Parse the `params` text. Raises `InvalidRequest` when it is not one JSON object in UTF-8."""
    if len(text) > MAX_PARAMS_BYTES:
        raise InvalidRequest(f"'params' is longer than {MAX_PARAMS_BYTES} bytes", field="params")
    try:
        params = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest("'params' is not valid JSON", field="params") from None
    if not isinstance(params, dict):
        raise InvalidRequest("'params' must be a JSON object", field="params")
    return params


def _cancel_handle(params: dict[str, Any]) -> str:
    handle = params[protocol.CANCEL_KEY]
    if len(params) != 1 or not isinstance(handle, str):
        raise InvalidRequest("a cancel request holds the key 'cancel' alone, with a handle", field="cancel")
    return handle
