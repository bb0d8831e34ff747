# SPDX-License-Identifier: Apache-2.0
"""What the cards of all models share: look, tables and plots."""

from __future__ import annotations

import html
import io
from collections.abc import Callable

import matplotlib
import numpy as np

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

# Plots have no background, and black text: in the dark they are inverted, and keep their hues.
STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #d0d7de}
th:first-child,td:first-child{text-align:left}.red{color:#b42318;font-weight:600}.note{color:#57606a}
td{overflow-wrap:break-word}svg{max-width:100%;height:auto}code{overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}
.red{color:#ff7b72}.note{color:#9198a1}svg{filter:invert(.93) hue-rotate(180deg)}}
"""


def svg(draw: Callable[[Axes], None], width: float = 8, height: float = 3.4) -> str:
    plt.rcParams["svg.hashsalt"] = "homenode"
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    draw(axes)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)
    return out.getvalue()[out.getvalue().index("<svg") :]


def percent(value: float) -> str:
    return "not measured" if np.isnan(value) else f"{100 * value:.1f}%"


def table(heads: list[str], rows: list[list[str]]) -> str:
    def cell(tag: str, texts: list[str]) -> str:
        return "".join(f"<{tag}>{html.escape(t)}</{tag}>" for t in texts)

    return f"<table><tr>{cell('th', heads)}</tr>" + "".join(f"<tr>{cell('td', r)}</tr>" for r in rows) + "</table>"


def document(title: str, parts: list[str]) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style><body>'
        + "\n".join(parts)
        + "</body></html>\n"
    )
