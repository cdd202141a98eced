# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""`tritone doctor`: what is here, what is missing, how to get it."""

from __future__ import annotations


def doctor() -> None:
    """Check everything a server needs on this machine and say how to get what is missing.

    Starts nothing. Ends with status 1 when something that serving needs is missing; GPU and Docker are optional.
    """
    import typer

    from tritone.tools.diagnosis import Mark, diagnose

    findings = diagnose()
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        typer.echo(f"{finding.mark:<8} {finding.what:<{width}}  {finding.found}")
        if finding.remedy:
            typer.echo(f"{'':<8} {'':<{width}}  -> {finding.remedy}")
    if any(finding.mark is Mark.MISSING for finding in findings):
        raise typer.Exit(1)
