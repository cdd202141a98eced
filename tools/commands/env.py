# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone env`: use tritonserver from your own shell."""

from __future__ import annotations


def env() -> None:
    """Print shell exports after which `tritonserver` runs Tritone's models.

    Puts a `tritonserver` on PATH (a two-line script around the one in the wheel, which sets its library path for
    itself only), this Python before every other, and Tritone's options into TRITON_ARGS.

    Example, in the project root:

    - `eval "$(.venv/bin/tritone env)"`
    - `tritonserver --model-repository model_repository $TRITON_ARGS`
    """
    import typer

    from tritone.tools.shell_environment import shell_exports

    typer.echo(shell_exports(), nl=False)
