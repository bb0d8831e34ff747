# SPDX-License-Identifier: Apache-2.0
"""Which placements to probe, and the forest from probes to all placements."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from .data import DataSet, Floats, Texts

SEED = 23
# Leaves of three rows: an application has three inputs. Fewer follow the noise.
LEAF = 3
TREES = 100

Probes = tuple[int, ...]


def forest(trees: int = TREES) -> RandomForestRegressor:
    # One job: trees are added in order, as internal/model does.
    return RandomForestRegressor(trees, min_samples_leaf=LEAF, random_state=SEED, n_jobs=1)


def ratios(data: DataSet, probes: Probes) -> Floats:
    """The inputs: the speed in each further probe, relative to the first one, the baseline."""
    return data.speed[:, list(probes[1:])] / data.speed[:, [probes[0]]]


def targets(data: DataSet, baseline: int) -> Floats:
    """The outputs: the speed in every placement, relative to the baseline."""
    return data.speed / data.speed[:, [baseline]]


def errors(data: DataSet, predicted: Floats, baseline: int) -> Floats:
    """|predicted - measured| / measured, where measured is another run than the probes."""
    return np.abs(predicted * data.speed[:, [baseline]] - data.again) / data.again


def unseen(data: DataSet, probes: Probes) -> list[int]:
    """Placements that are not probed: only there a prediction is worth something."""
    return [p for p in range(len(data.placements)) if p not in probes]


def folds(groups: Texts) -> list[np.ndarray]:
    """One boolean mask of the rows to leave out for each group."""
    return [groups == name for name in np.unique(groups)]


def quick_error(data: DataSet, probes: Probes) -> float:
    """The error of one tree, with a kind left out at a time: cheap, and it ranks as a forest does."""
    inputs, outputs, off = ratios(data, probes), targets(data, probes[0]), np.empty(data.speed.shape)
    for out in folds(data.kind):
        tree = DecisionTreeRegressor(min_samples_leaf=2 * LEAF, random_state=SEED)
        tree.fit(inputs[~out], outputs[~out])
        off[out] = errors(data.keep(out), tree.predict(inputs[out]).reshape(out.sum(), -1), probes[0])
    return float(off[:, unseen(data, probes)].mean())


def choose_pair(data: DataSet) -> Probes:
    """The two placements from which the others are predicted best. The first is the baseline:
    the one with fewer nodes, which a user can always have."""
    pairs = itertools.combinations(range(len(data.placements)), 2)
    return min(pairs, key=lambda pair: quick_error(data, pair))


def choose_third(data: DataSet, pair: Probes) -> Probes:
    return min(((*pair, p) for p in unseen(data, pair)), key=lambda probes: quick_error(data, probes))


@dataclass(frozen=True)
class Forest:
    """A fitted forest and how far it is off (conformal with kinds left out, by placement)."""

    probes: Probes
    trees_: RandomForestRegressor
    # With this confidence, speed is within prediction x (1 +- interval_).
    interval_: Floats
    confidence: float
    # measured / predicted of the rows that gave interval_, ascending, by placement: bounds of
    # any confidence follow from them.
    ratios_: Floats

    def predict(self, data: DataSet) -> Floats:
        return np.asarray(self.trees_.predict(ratios(data, self.probes)), dtype=np.float64)


def split(groups: Texts, share: float, seed: int) -> np.ndarray:
    """A mask of about this share of the rows, whole groups at a time."""
    names = np.unique(groups)
    np.random.default_rng(seed).shuffle(names)
    return np.isin(groups, names[: max(1, round(share * len(names)))])


def against(data: DataSet, predicted: Floats, baseline: int) -> Floats:
    """measured / predicted, ascending by placement, where measured is another run than the probes."""
    return np.asarray(np.sort(data.again / (predicted * data.speed[:, [baseline]]), axis=0), dtype=np.float64)


def conformal(ratios: Floats, confidence: float) -> Floats:
    """The quantile of |measured / predicted - 1| on rows that the forest has not seen: the
    ceil((n + 1) x confidence)-th smallest (conformal prediction). Infinite: too few rows."""
    off = np.sort(np.abs(ratios - 1), axis=0)
    rank = int(np.ceil((len(off) + 1) * confidence))
    return off[rank - 1] if rank <= len(off) else np.full(off.shape[1], np.inf)


def fit(data: DataSet, probes: Probes, confidence: float, trees: int = TREES) -> Forest:
    """All rows fit the forest. The intervals are those of forests that have not seen a row's kind:
    the next workload may be of no kind that was measured."""
    model = forest(trees).fit(ratios(data, probes), targets(data, probes[0]))
    predicted = np.empty(data.speed.shape)
    for out in folds(data.kind if len(np.unique(data.kind)) > 1 else data.application):
        learn = data.keep(~out)
        other = forest(trees).fit(ratios(learn, probes), targets(learn, probes[0]))
        predicted[out] = other.predict(ratios(data.keep(out), probes))
    off = against(data, predicted, probes[0])
    return Forest(probes, model, conformal(off, confidence), confidence, off)
