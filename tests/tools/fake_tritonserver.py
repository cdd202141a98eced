# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for tritonserver: the few endpoints and habits the launcher relies on, and misbehaviour on request.

FAKE_TRITON_MODE: serve (default) · dead (ends at once) · load-failure (logs one and hangs) · never-ready ·
zero-bytes (the NumPy fault) · stubborn (ignores SIGTERM)
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

HELP = """Usage: tritonserver [options]
  --help
\tPrint usage
  --model-repository <string>
\tPath
  --metrics-config <string>
"""
ENTRY = '%s1130 21:11:26.418690 7484 %s] "%s"\n'
MODE = os.environ.get("FAKE_TRITON_MODE", "serve")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200 if MODE != "never-ready" and self.path == "/v2/health/ready" else 404, {})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        outputs = [dict(tensor) for tensor in request.get("inputs", [])]
        if MODE == "zero-bytes":
            outputs = [{**tensor, "data": []} for tensor in outputs]
        self._answer(200, {"outputs": outputs})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def option(name: str) -> str:
    return next(text.partition("=")[2] for text in sys.argv if text.startswith(f"--{name}="))


def main() -> None:
    if "--help" in sys.argv:
        print(HELP)
        return
    prefix = next(text.rpartition("=")[2] for text in sys.argv if "shm-region-prefix-name" in text)
    with open(f"/dev/shm/{prefix}0000", "w", encoding="ascii"):
        pass
    if MODE == "dead":
        sys.stderr.write(ENTRY % ("E", "server.cc:12", "the disk is on fire\\n\\nAt:\\n  cellar"))
        sys.exit(1)
    if MODE == "load-failure":
        sys.stderr.write(ENTRY % ("E", "model_lifecycle.cc:642", "failed to load 'echo' version 1: Internal: no"))
        sys.stderr.flush()
        time.sleep(60)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    HTTPServer(("127.0.0.1", int(option("http-port"))), Handler).serve_forever()


if __name__ == "__main__":
    main()
