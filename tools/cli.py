# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The `tritone` command. Each command is a module of `tools/commands` and imports what it needs when it runs."""

from __future__ import annotations

import sys

import typer

from tritone.tools.commands import bench, build, chat, demo, doctor, env, serve, supervise

app = typer.Typer(
    name="tritone",
    help="""Serve models on NVIDIA Triton behind an OpenAI-compatible API.

    Start here: **tritone demo** answers a question on this machine, **tritone serve** keeps serving, **tritone doctor**
    says what is missing.

    Logs of the last runs are kept in TRITONE_STATE_DIR (`~/.local/state/tritone` by default).""",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="serve")(serve.serve)
app.command(name="chat")(chat.chat)
app.command(name="demo")(demo.demo)
app.command(name="build")(build.build)
app.command(name="doctor")(doctor.doctor)
app.command(name="env")(env.env)
app.command(name="supervise")(supervise.supervise)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Entry of the console script. An error the user can put right is said in words, without a traceback."""
    from tritone.tools.problems import LaunchError
    from tritone.tools.stop_signals import StopRequested

    try:
        app()
    except LaunchError as error:
        from tritone.tools.console import show_error

        show_error(error)
        sys.exit(1)
    except (StopRequested, KeyboardInterrupt):
        sys.exit(130)


if __name__ == "__main__":
    main()
