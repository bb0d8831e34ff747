# SPDX-License-Identifier: Apache-2.0
"""One self-contained page about a model."""

from __future__ import annotations

import html

import numpy as np
from matplotlib.axes import Axes

from .categories import Categories
from .data import DataSet
from .evaluate import NESTED, Result
from .fit import Forest, Probes, targets
from .page import document, percent, svg, table


def name(data: DataSet, placement: int) -> str:
    return f"#{placement} (nodes {data.placements[placement].nodes}; {data.placements[placement].scores})"


def page(data: DataSet, forests: list[Forest], result: Result, groups: Categories, target: float | None) -> str:
    two, arms = forests[0], {a.name: a for a in result.arms}
    probes, counters = arms[NESTED], arms["counters of one placement"]
    verdict = f"With a kind of workload left out, two probes are off by {percent(probes.by_kind)}; counters of one placement by {percent(counters.by_kind)}."
    if target is not None:
        met = probes.by_kind <= target
        verdict += f" Target: {percent(target)}: " + ("met." if met else '<span class="red">not met.</span>')
    if probes.by_kind >= counters.by_kind:
        verdict += ' <span class="red">Probes are no better than counters.</span>'
    d, about = result.decisions, data.about
    parts = [
        f"<h1>Placements of {about['vcpus']} vCPUs on {html.escape(about['machine'])}</h1>",
        f"<p>{verdict}</p>",
        f'<p class="red">Trained in the {html.escape(about["source"])}: every figure is {html.escape(about["how"])}. It is used only where that is asked for.</p>',
        "<h2>Errors</h2>",
        (
            f"<p>Mean |predicted &minus; measured| / measured over the placements that were not probed; measured is another run than the probe. "
            f"Without a model (the mean of all workloads): {percent(result.no_model)}. Two runs of the same differ by {percent(result.retest)}. "
            f"Counters are those of placement {html.escape(name(data, result.counters_from))}, where they predict best.</p>"
        ),
        table(
            ["Predicted from", "a kind left out", "an application left out"],
            [[a.name, percent(a.by_kind), percent(a.by_application)] for a in result.arms],
        ),
        svg(lambda axes: draw_kinds(axes, result)),
        "<h2>Probes</h2>",
        (
            f"<p>Chosen for the least error: baseline {html.escape(name(data, two.probes[0]))}, second {html.escape(name(data, two.probes[1]))}, "
            f"third {html.escape(name(data, forests[1].probes[2]))}.</p>"
        ),
        svg(lambda axes: draw_curves(axes, data, two.probes)),
        "<h2>Intervals and decisions</h2>",
        (
            f"<p>Conformal intervals of {percent(two.confidence)}, from forests that have not seen a kind, hold {percent(d.coverage)} of the speeds of applications that were left out, "
            f"and {percent(d.coverage_kind)} where the whole kind was left out (nothing promises that).</p>"
        ),
        (
            f"<p>Asked for the fewest nodes that reach 0.9, 1.0 and 1.1 of the baseline: a third probe is asked for in {percent(d.third)} of the decisions. "
            f"Placements chosen miss the goal by more than 5% in {percent(d.wrong_two)} (two probes) and {percent(d.wrong_three)} (third where asked for); "
            f"they have {d.nodes_two:.2f} and {d.nodes_three:.2f} nodes on average.</p>"
        ),
        table(
            ["Placement", "interval, two probes", "three probes"],
            [
                [name(data, p), *("± " + percent(float(f.interval_[p])) for f in forests[:2])]
                for p in range(len(data.placements))
            ],
        ),
        "<h2>Categories</h2>",
        f"<p>k-means; the best silhouette, {groups.silhouettes[groups.k]:.2f}, is that of {groups.k} categories.</p>",
        svg(lambda axes: draw_silhouettes(axes, groups), 8, 2.6),
        svg(lambda axes: draw_centers(axes, data, groups)),
        table(["Category", "workloads", "of kind"], members(data, groups)),
        "<h2>Where it comes from</h2>",
        table(
            ["", ""],
            [[k, v] for k, v in sorted(about.items())]
            + [["data set, SHA-256", data.sha256], ["workloads", str(len(data.speed))]],
        ),
        '<p class="note">Predictions hold for a workload that shares no node with others. A shared front end or FPU (Opteron) is not in the simulator.</p>',
    ]
    return document(f"Model of {about['machine']}", parts)


def members(data: DataSet, groups: Categories) -> list[list[str]]:
    rows = []
    for k in range(groups.k):
        kinds, counts = np.unique(data.kind[groups.labels == k], return_counts=True)
        order = np.argsort(-counts)
        rows.append([str(k), str(counts.sum()), ", ".join(f"{kinds[i]} {counts[i]}" for i in order)])
    return rows


def draw_kinds(axes: Axes, result: Result) -> None:
    arms = [a for a in result.arms if a.name in ("two probes", "counters of one placement", "two probes and counters")]
    kinds = sorted(arms[0].kinds)
    for i, arm in enumerate(arms):
        axes.bar(np.arange(len(kinds)) + (i - 1) * 0.27, [100 * arm.kinds[k] for k in kinds], 0.25, label=arm.name)
    axes.axhline(100 * result.retest, color="black", linewidth=0.8, linestyle=":", label="two runs of the same")
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_ylabel("error, %")
    axes.set_title("A kind left out")
    axes.legend(fontsize=8)


def draw_curves(axes: Axes, data: DataSet, probes: Probes) -> None:
    rows = targets(data, probes[0])
    for kind in np.unique(data.kind):
        axes.plot(rows[data.kind == kind].mean(axis=0), marker="o", markersize=3, label=str(kind))
    for probe in probes:
        axes.axvline(probe, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("placement (dotted: probes)")
    axes.set_ylabel("speed / baseline")
    axes.set_title("Mean of each kind")
    axes.legend(fontsize=7, ncols=2)


def draw_silhouettes(axes: Axes, groups: Categories) -> None:
    ks = sorted(groups.silhouettes)
    axes.bar(ks, [groups.silhouettes[k] for k in ks], color=["#0969da" if k == groups.k else "#afb8c1" for k in ks])
    axes.set_xlabel("categories")
    axes.set_ylabel("silhouette")


def draw_centers(axes: Axes, data: DataSet, groups: Categories) -> None:
    for k in range(groups.k):
        axes.plot(groups.centers[k], marker="o", markersize=3, label=f"category {k}: {int((groups.labels == k).sum())}")
    axes.set_xlabel("placement")
    axes.set_ylabel("speed / baseline")
    axes.set_title("Centres of the categories")
    axes.legend(fontsize=7)
