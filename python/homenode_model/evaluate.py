# SPDX-License-Identifier: Apache-2.0
"""Errors on applications and kinds that were left out, and coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .data import DataSet, Floats
from .fit import (
    Forest,
    Probes,
    choose_pair,
    errors,
    fit,
    folds,
    forest,
    ratios,
    split,
    targets,
    unseen,
)

GOALS = (0.9, 1.0, 1.1)
# The figure that a target is compared with: nothing was chosen with the kind that is left out.
NESTED = "two probes, the pair chosen without the kind"


@dataclass(frozen=True)
class Arm:
    """One way to predict, judged on what it has not seen."""

    name: str
    by_kind: float  # mean error, a kind left out
    by_application: float  # mean error, an application left out
    kinds: dict[str, float]  # by_kind, of each kind


@dataclass(frozen=True)
class Decisions:
    """What a goal asks: the fewest nodes that meet it, of workloads that were not seen."""

    coverage: float  # share of speeds inside their interval
    coverage_kind: float  # the same where the kind was not seen: nothing promises it
    third: float  # share of decisions in which an interval straddles the goal
    wrong_two: float  # share of placements chosen that miss the goal by more than 5 %
    wrong_three: float  # with the third probe where it is asked for
    nodes_two: float  # mean number of nodes chosen
    nodes_three: float


@dataclass(frozen=True)
class Result:
    arms: tuple[Arm, ...]
    no_model: float  # error of the mean of all workloads
    retest: float  # |first run / second run - 1|, mean: no model can be better than about this
    decisions: Decisions
    counters_from: int  # the placement in which counters predict best


def left_out(data: DataSet, inputs: Floats, baseline: int, groups: np.ndarray, trees: int) -> Floats:
    outputs, off = targets(data, baseline), np.empty(data.speed.shape)
    for out in folds(groups):
        model = forest(trees).fit(inputs[~out], outputs[~out])
        off[out] = errors(data.keep(out), model.predict(inputs[out]), baseline)
    return off


def arm(data: DataSet, name: str, inputs: Floats, probes: Probes, trees: int) -> Arm:
    rest = unseen(data, probes)
    kind = left_out(data, inputs, probes[0], data.kind, trees)[:, rest]
    application = left_out(data, inputs, probes[0], data.application, trees)[:, rest]
    kinds = {str(k): float(kind[data.kind == k].mean()) for k in np.unique(data.kind)}
    return Arm(name, float(kind.mean()), float(application.mean()), kinds)


def nested(data: DataSet, trees: int) -> Arm:
    """Two probes, where the pair too was chosen without the kind that is left out."""
    off, kinds = [], {}
    for out in folds(data.kind):
        learn, check = data.keep(~out), data.keep(out)
        pair = choose_pair(learn)
        model = forest(trees).fit(ratios(learn, pair), targets(learn, pair[0]))
        one = errors(check, model.predict(ratios(check, pair)), pair[0])[:, unseen(data, pair)]
        kinds[str(check.kind[0])] = float(one.mean())
        off.append(one.ravel())
    return Arm(NESTED, float(np.concatenate(off).mean()), float("nan"), kinds)


def best_counters(data: DataSet, baseline: int) -> int:
    """The placement whose counters predict best, so that probes are compared with the best of them."""

    def error(p: int) -> float:
        return float(left_out(data, data.counters[:, p], baseline, data.kind, 5).mean())

    return min(range(len(data.placements)), key=error)


def evaluate(data: DataSet, pair: Probes, third: Probes, confidence: float, trees: int) -> Result:
    """trees are those of the model: its errors are of forests like the ones that are exported."""
    place = best_counters(data, pair[0])
    counters = data.counters[:, place]
    arms = (
        arm(data, "two probes", ratios(data, pair), pair, trees),
        nested(data, trees),
        arm(data, "counters of one placement", counters, pair, trees),
        arm(data, "two probes and counters", np.hstack([ratios(data, pair), counters]), pair, trees),
        arm(data, "three probes", ratios(data, third), third, trees),
    )
    mean = np.tile(targets(data, pair[0]).mean(axis=0), (len(data.speed), 1))
    no_model = float(errors(data, mean, pair[0])[:, unseen(data, pair)].mean())
    retest = float(np.abs(data.speed / data.again - 1).mean())
    return Result(arms, no_model, retest, decide_all(data, pair, third, confidence, trees), place)


@dataclass(frozen=True)
class Choice:
    placement: int  # -1: none meets the goal for sure
    straddles: bool  # a placement of no more nodes may meet it, too


def choose(model: Forest, predicted: Floats, nodes: Floats, goal: float) -> Choice:
    """The fewest nodes whose interval is above the goal; nodes are in ascending order."""
    low, high = predicted * (1 - model.interval_), predicted * (1 + model.interval_)
    sure = np.flatnonzero(low >= goal)
    placement = int(sure[0]) if len(sure) else -1
    before = np.arange(len(predicted)) < placement if placement >= 0 else np.ones(len(predicted), bool)
    return Choice(placement, bool((before & (low < goal) & (high >= goal)).any()))


def decide_all(data: DataSet, pair: Probes, third: Probes, confidence: float, trees: int) -> Decisions:
    """Ten times a quarter of the applications is left out and decided about."""
    nodes = np.array([p.node_count for p in data.placements], dtype=np.float64)
    inside, third_wanted = [], []
    wrong: dict[int, list[bool]] = {2: [], 3: []}
    used: dict[int, list[float]] = {2: [], 3: []}
    for seed in range(10):
        out = split(data.application, 0.25, 1000 + seed)
        learn, check = data.keep(~out), data.keep(out)
        two, three = fit(learn, pair, confidence, trees), fit(learn, third, confidence, trees)
        by_two, by_three = two.predict(check), three.predict(check)
        actual = check.again / check.speed[:, [pair[0]]]
        inside.append(covered(two, by_two, actual, unseen(data, pair)))
        for row in range(len(actual)):
            for goal in GOALS:
                first = choose(two, by_two[row], nodes, goal)
                second = choose(three, by_three[row], nodes, goal) if first.straddles else first
                third_wanted.append(first.straddles)
                for number, choice in ((2, first), (3, second)):
                    if choice.placement >= 0:
                        wrong[number].append(actual[row, choice.placement] < goal * 0.95)
                        used[number].append(nodes[choice.placement])
    return Decisions(
        mean(inside),
        coverage_kind(data, pair, confidence, trees),
        mean(third_wanted),
        mean(wrong[2]),
        mean(wrong[3]),
        mean(used[2]),
        mean(used[3]),
    )


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def covered(model: Forest, predicted: Floats, actual: Floats, where: list[int]) -> float:
    return float((np.abs(actual / predicted - 1) <= model.interval_)[:, where].mean())


def coverage_kind(data: DataSet, pair: Probes, confidence: float, trees: int) -> float:
    shares = []
    for out in folds(data.kind):
        check, model = data.keep(out), fit(data.keep(~out), pair, confidence, trees)
        shares.append(covered(model, model.predict(check), check.again / check.speed[:, [pair[0]]], unseen(data, pair)))
    return float(np.mean(shares))
