# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

CheckpointOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        help="Weights: a folder, package:NAME (an installed package) or hub:ORG/NAME[@REVISION]. "
        "The pipeline's demo checkpoint when not given."
    ),
]
ProfileOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Engine settings to use: a file of the pipeline's profiles folder, such as default or gpu."),
]
NameOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Model name clients use; the pipeline's own name when not given."),
]
SettingsOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--set",
        metavar="STAGE.SETTING=VALUE",
        help="Give one engine setting, over the profile: --set thinker.max_rows=8; may be repeated.",
    ),
]
