# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone demo`: everything once, from nothing to an answer."""

from __future__ import annotations

QUESTIONS = ("What is the capital of France?", "Name the three primary colors.")
MAX_TOKENS = 96


def demo() -> None:
    """Start everything on free ports, ask a real model two questions through the OpenAI SDK, and stop.

    This is what `make demo` runs: a real tritonserver with the packaged SmolLM2-135M-Instruct, the gateway in front,
    and the unmodified OpenAI Python client. Succeeds only if the answers arrived.
    """
    from tritone.tools.console import say
    from tritone.tools.gateway_process import configured_keys
    from tritone.tools.local_server import temporary_server
    from tritone.tools.openai_client import ask, connect, require_sdk
    from tritone.tools.problems import LaunchError
    from tritone.tools.stop_signals import stop_on_signals

    require_sdk()
    with stop_on_signals(), temporary_server("demo", ["smollm2_chat"]) as stack:
        say(f"Triton and the gateway are up: {stack.gateway.url}/v1\n")
        # Keys of a server you run yourself may stand in the environment; the demo's gateway wants one then.
        client = connect(f"{stack.gateway.url}/v1", next(iter(configured_keys()), None))
        for question in QUESTIONS:
            print(f"> {question}", flush=True)
            answer = ask(client, "smollm2_chat", question, max_tokens=MAX_TOKENS, temperature=0.0)
            if not answer.text.strip() or answer.finish_reason is None:
                raise LaunchError("no answer arrived", remedy=f"see the logs in {stack.server.run_folder}")
            rate = answer.num_tokens / answer.total_s
            print(f"  [{answer.num_tokens} tokens, first after {answer.first_token_s:.2f} s, {rate:.0f} tokens/s]\n")
    say("Next: `tritone serve` keeps the server running (or `make serve`); `tritone --help` shows the rest.")
