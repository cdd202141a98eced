# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone chat`: one question, one streamed answer."""

from __future__ import annotations

from typing import Annotated, Optional

import typer


def chat(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    url: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(envvar="TRITONE_URL", help="A server to ask, with /v1; any OpenAI-compatible one works."),
    ] = None,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Model to ask; the first one served when not given."),
    ] = None,
    api_key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(envvar="TRITONE_API_KEY", help="Key of the server, if it wants one."),
    ] = None,
    system: Annotated[Optional[str], typer.Option(help="System message.")] = None,  # noqa: UP045
    max_tokens: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Longest answer, in tokens."),
    ] = None,
    temperature: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(min=0.0, max=2.0, help="0 is always the likeliest word."),
    ] = None,
) -> None:
    """Ask a running server through the OpenAI SDK and print the answer as it streams.

    Asks the server at --url, else the one `tritone serve` runs on this machine (port TRITONE_PORT, 8091 by default).
    If none runs there, one is started, asked, and stopped again.

    Example:

    - `tritone chat "Name three rivers of Europe." --max-tokens 64`
    """
    from tritone.tools.console import say
    from tritone.tools.gateway_process import configured_keys
    from tritone.tools.local_server import running_server, temporary_server
    from tritone.tools.openai_client import ask, connect, first_model, require_sdk
    from tritone.tools.stop_signals import stop_on_signals

    def run(base_url: str) -> None:
        client = connect(base_url, api_key or next(iter(configured_keys()), None))
        chosen = model or first_model(client)
        answer = ask(client, chosen, question, system=system, max_tokens=max_tokens, temperature=temperature)
        if answer.finish_reason == "length":
            say(f"[cut off after {answer.num_tokens} tokens]")

    require_sdk()
    with stop_on_signals():
        base_url = url or running_server()
        if base_url is not None:
            run(base_url)
        else:
            with temporary_server("chat", announce=True) as stack:
                run(f"{stack.gateway.url}/v1")
