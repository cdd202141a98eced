# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The chat report as Markdown."""

from __future__ import annotations

from typing import Any

UNITS = {"one_row": "tokens/s", "eight_rows": "tokens/s", "first_token_s": "s"}
TITLES = {"one_row": "One request", "eight_rows": "Eight requests at once", "first_token_s": "Time to first token"}


def markdown(report: dict[str, Any]) -> str:
    """A page of tables: targets, then every side with its spread."""
    machine, settings = report["machine"], report["settings"]
    lines = [
        f"# Chat on {machine.get('gpu') or machine['processor']}",
        "",
        f"{machine['time']} · {machine['cores']} cores · torch {machine['torch']} · transformers "
        f"{machine['transformers']} · Python {machine['python']} · {settings['checkpoint']} in {settings['dtype']} · "
        f"prompts of {settings['prompt_tokens']} tokens, {settings['new_tokens']} new tokens, "
        f"median of {settings['rounds']} rounds with sides alternating",
        "",
        "| target | value | bound | met |",
        "|---|---|---|---|",
    ]
    for target in report["targets"]:
        met = "yes" if target["met"] else "**no**"
        lines.append(f"| {target['name']} | {target['value']:.3f} | {target['relation']} {target['bound']} | {met} |")
    for name, sides in report["sections"].items():
        unit = UNITS[name]
        lines += ["", f"## {TITLES[name]}", "", f"| side | median {unit} | lowest | highest |", "|---|---|---|---|"]
        for side, samples in sides.items():
            values = (samples["median"], samples["minimum"], samples["maximum"])
            digits = 4 if unit == "s" else 1
            lines.append(f"| {side} | " + " | ".join(f"{value:.{digits}f}" for value in values) + " |")
    lines += [
        "",
        "## Engine alone by rows",
        "",
        f"Weights {report['sweep']['weight_bytes'] / 1e9:.3f} GB, copy bandwidth "
        f"{report['sweep']['copy_bandwidth_bytes_per_s'] / 1e9:.1f} GB/s (bytes read and written).",
        "",
        "| rows | decode tokens/s | lowest | highest | share of the bandwidth floor |",
        "|---|---|---|---|---|",
    ]
    for rows, samples in report["sweep"]["rows"].items():
        lines.append(
            f"| {rows} | {samples['median']:.1f} | {samples['minimum']:.1f} | {samples['maximum']:.1f} | "
            f"{samples['share_of_bandwidth_floor']:.2f} |"
        )
    return "\n".join(lines) + "\n"
