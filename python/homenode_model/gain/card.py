# SPDX-License-Identifier: Apache-2.0
"""One self-contained page about a model of gains."""

from __future__ import annotations

import html

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from ..page import document, percent, svg, table
from . import elsewhere
from .data import CLIPPED_AT, Trials
from .elsewhere import Elsewhere
from .evaluate import ALL, CLEAR_GAIN, FOUR, IN_THE_PAPER, RANDOM, SERVICES, XGBOOST, Result, Score, score_of, wanted
from .export import source
from .fit import FOLDS, Gain, describe

# Rows of the plot: more hide each other.
DRAWN = 500


def number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "not measured"


def span(ends: tuple[float, float], digits: int) -> str:
    return "one run" if ends[0] == ends[1] else f"{ends[0]:.{digits}f} to {ends[1]:.{digits}f}"


def score_row(s: Score) -> list[str]:
    paper = IN_THE_PAPER[s.model] if s.protocol == RANDOM else None
    return [
        f"{s.protocol}; {s.features} features; {s.model}",
        number(s.r2),
        span(s.r2_range, 2),
        percent(s.share_r2),
        number(s.mae, 4),
        span(s.mae_range, 4),
        percent(s.share_mae),
        f"{paper[0]:.2f}, {paper[1]:.3f}" if paper else "",
    ]


def verdict(result: Result) -> str:
    all_, four = (score_of(list(result.scores), SERVICES, f, XGBOOST) for f in (ALL, FOUR))
    return (
        f"For a service that it has not seen, the model explains {percent(all_.r2)} of the variance of gains, of "
        f"{percent(result.ceiling_r2)} that any prediction could (with MAO's four counters alone: {percent(four.r2)}). "
        f"It is off by {number(all_.mae)} on average. {percent(result.coverage)} of the gains are inside their intervals."
    )


def target_lines(result: Result) -> str:
    def line(met: bool, text: str) -> str:
        word = "ok" if met else '<span class="red">UNMET</span>'
        return f"<li>{word}: {html.escape(text)}</li>"

    return "<ul>" + "".join(line(t.met, wanted(t)) for t in result.targets) + "</ul>"


def page(trials: Trials, gain: Gain, result: Result, judged: Elsewhere | None = None) -> str:
    machines = ", ".join(np.unique(trials.machine))
    parts = [
        f"<h1>Gain of a binding on {html.escape(machines)}</h1>",
        f"<p>{verdict(result)}</p>",
        (
            f'<p class="red">Source of the trials: {html.escape(source(trials))}. No gain of a real server is in them, unless the source says so. '
            "The model is used only where that is asked for.</p>"
        ),
        "<h2>Targets</h2>",
        target_lines(result),
        "<h2>Predicted and measured</h2>",
        svg(lambda axes: draw_rows(axes, result), 8, 5.2),
        svg(lambda axes: draw_most(axes, result), 8, 5.2),
        (
            f'<p class="note">Services held out: each replica is predicted by a model that has not seen its service. Lines are intervals of '
            f"{percent(gain.interval_.confidence)}. {min(DRAWN, len(trials.gain))} of {len(trials.gain)} replicas. Gains below {CLIPPED_AT} are drawn, fitted and scored as {CLIPPED_AT}.</p>"
        ),
        "<h2>Scores</h2>",
        table(
            ["Protocol", "R²", "range", "of ceiling", "MAE", "range", "ceiling / MAE", "paper: R², MAE"], scores(result)
        ),
        (
            f"<p>The ceiling: two trials of one replica correlate by {number(result.ceiling_r2)}, which is the R² of a perfect prediction. "
            f"Its mean error is about {number(result.ceiling_mae, 4)}, the mean difference of two trials / &radic;2; that is exact for normal noise, "
            "and this noise has longer tails. Shares are of the ceiling of the same rows. "
            "The paper's figures are of 2,000 samples of Baidu's servers, whose noise is not known: they are not of these trials.</p>"
        ),
        "<h2>Intervals and signs</h2>",
        f"<p>{html.escape(interval_text(gain, result))}</p>",
        table(
            ["Kind", "replicas", "covered", "constant width", "mean width", "R²", "kind left out", "ceiling"],
            kinds(result),
        ),
        f"<p>{sign_text(result)}</p>",
        *other_trials(judged),
        "<h2>What moves a prediction</h2>",
        svg(lambda axes: draw_importance(axes, result), 8, 3.4),
        "<h2>Without a feature</h2>",
        (
            "<p>No trial lacked a feature. In training each row comes a second time with one feature unknown, so that the model knows where to go without it. "
            "R² with services held out, where one feature is unknown, and where the median of the training rows is used instead:</p>"
        ),
        table(
            ["Feature", "unknown", "median"],
            [[n, number(a), number(b)] for n, (a, b) in sorted(result.unknown.items())],
        ),
        "<h2>What it does not know</h2>",
        unknowns(trials, machines),
        "<h2>Where it comes from</h2>",
        table(["", ""], origin(trials, gain)),
    ]
    return document(f"Gain of a binding on {machines}", parts)


def other_trials(judged: Elsewhere | None) -> list[str]:
    if judged is None:
        return []
    said = "".join(f"<p>{html.escape(line[0].upper() + line[1:])}.</p>" for line in elsewhere.lines(judged))
    word = html.escape(judged.verdict).replace("UNMET", '<span class="red">UNMET</span>')
    return ["<h2>On other trials</h2>", said, f"<ul><li>{word}</li></ul>"]


def scores(result: Result) -> list[list[str]]:
    return [score_row(s) for s in result.scores]


def kinds(result: Result) -> list[list[str]]:
    return [
        [
            kind,
            str(k.rows),
            percent(k.coverage),
            percent(k.coverage_constant),
            number(k.width),
            number(k.r2),
            number(k.r2_left_out),
            number(k.ceiling),
        ]
        for kind, k in result.kinds.items()
    ]


def interval_text(gain: Gain, result: Result) -> str:
    return (
        f"Conformal, from models that have not seen a row's service ({FOLDS} folds): {describe(gain)}. The narrower was kept. "
        f"They hold {percent(result.coverage)} of the gains of services that were held out; of constant width they hold {percent(result.coverage_constant)}. "
        "What is promised is the share over all replicas. Nothing is promised of one kind."
    )


def sign_text(result: Result) -> str:
    s = result.signs
    return (
        f"Of {s.rows} replicas with a mean gain of two trials above {percent(CLEAR_GAIN)} or below &minus;{percent(CLEAR_GAIN)}, the sign is right in {percent(s.right)}. "
        f"Binding helps {percent(s.helped)} of them, so a model that always says so is right as often as that. "
        f"Binding hurts {s.hurt_rows}: the model finds {percent(s.hurt_found)} of these."
    )


def unknowns(trials: Trials, machines: str) -> str:
    texts = [
        f"Trials are of {machines} (source: {source(trials)}). Another machine has other latencies between nodes: the model does not know it.",
        "A trial binds one replica alone. The gain of a server where all replicas are bound is another one.",
        "Features are means over 30 minutes. Those of one window are noisier.",
        "A replica outside the range of a feature, as the manifest has it, is not like the training rows.",
        f"Below {CLIPPED_AT} all gains are the same to it.",
        "Replicas of one server are in both parts when services are held out: server_busy_ratio and idlest_node_busy_ratio are nearly the same for them.",
    ]
    return "<ul>" + "".join(f"<li>{html.escape(t)}</li>" for t in texts) + "</ul>"


def origin(trials: Trials, gain: Gain) -> list[list[str]]:
    seeds = np.unique(trials.seed)
    return [
        ["source", source(trials)],
        ["machines", ", ".join(np.unique(trials.machine))],
        ["trials", str(len(trials.gain))],
        ["services", str(len(np.unique(trials.service)))],
        ["seeds", f"{seeds[0]} to {seeds[-1]}, {len(seeds)} of them"],
        ["generator version", str(trials.generator)],
        ["command", trials.command],
        ["data set, SHA-256", trials.sha256],
        ["parameters", f"{gain.found.chosen}, {gain.found.trees} trees"],
    ]


def draw_rows(axes: Axes, result: Result) -> None:
    one, trials = result.repeats[0], result.rows
    drawn = np.arange(len(trials.gain)) % max(1, -(-len(trials.gain) // DRAWN)) == 0
    # Overloaded replicas are few, and what a wrong binding costs: all of them are drawn.
    drawn |= trials.gain < -0.2
    for at, kind in enumerate(np.unique(trials.kind)):
        rows, color = drawn & (trials.kind == kind), colormaps["tab10"](at)
        axes.vlines(trials.gain[rows], one.low[rows], one.high[rows], color=color, linewidth=0.7, alpha=0.3)
        axes.plot(trials.gain[rows], one.predicted[rows], ".", color=color, markersize=4, label=str(kind))
    ends = [float(trials.gain.min()), float(trials.gain.max())]
    axes.plot(ends, ends, color="black", linewidth=0.8, linestyle=":", label="measured = predicted")
    axes.axhline(0, color="black", linewidth=0.4)
    axes.axvline(0, color="black", linewidth=0.4)
    axes.set_xlabel("measured gain (latency saved, ratio)")
    axes.set_ylabel("predicted gain")
    axes.legend(fontsize=8, loc="upper left")


def draw_most(axes: Axes, result: Result) -> None:
    """Without the few replicas of large gains and losses."""
    draw_rows(axes, result)
    low, high = np.quantile(result.rows.gain, (0.04, 0.996))
    axes.set_xlim(low, high)
    axes.set_ylim(low - 0.05, high + 0.05)
    axes.set_title("The same, enlarged")


def draw_importance(axes: Axes, result: Result) -> None:
    names = sorted(result.importance, key=lambda n: result.importance[n])
    axes.barh(names, [result.importance[n] for n in names], color="#0969da")
    axes.set_xlabel("mean |SHAP|, in gain")
