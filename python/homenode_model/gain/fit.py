# SPDX-License-Identifier: Apache-2.0
"""The booster from counters to gain, its peers, and the intervals around it.

1. A grid of few parameters is searched, and the number of trees, with folds of whole services:
   the replicas of a service are alike, and a row of the same service gives the answer away.
2. The booster is fitted on all rows, and with less weight on a copy of each with one feature
   unknown, and on a copy without what is of the host.
3. Residuals are those of boosters that have not seen a row's service.
4. A second booster learns |residual| from the same features: the scale. Normalised conformal
   prediction (Lei et al., JASA 2018, section 5.2) makes wide intervals only where errors are.
5. Quantiles of residual / scale, low and high on their own: a binding hurts more than it helps.
6. The same with a scale of 1, that is a constant width. The narrower of the two stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost as xgb
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..data import Floats, Texts
from ..fit import SEED
from .data import FEATURES, Floats32, Trials

Mask = npt.NDArray[np.bool_]
Parameters = dict[str, float | str]

# One thread: sums in order are the same bits everywhere. Each tree sees 8 of 10 rows and of 10
# features, which averages the noise of single trials.
FIXED = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "nthread": 1,
    "seed": SEED,
    "eta": 0.05,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
}
# Depth bounds how far single trials are followed. A leaf has the weight of 5 rows at least, of 4
# trials or more (see masked). A larger grid takes longer, and there are 70 searches in an evaluation.
GRID: tuple[Parameters, ...] = tuple({"max_depth": depth, "min_child_weight": 5} for depth in (3, 4))
QUICK = GRID[:1]
# More are no better: with 500, R² of simulated trials was 0.717 where it is 0.716.
MOST_TREES = 300
# Weight of a row with something unknown beside one that knows all. With 1, R² of simulated trials was
# 0.699 instead of 0.716 where all is known, and 0.467 instead of 0.454 without what is of the host.
UNKNOWN_WEIGHT = 0.2
SEARCH_FOLDS, FOLDS = 3, 5
# What the replicas of one server have in common.
OF_HOST = ("cpu_of_node_ratio", "server_busy_ratio", "idlest_node_busy_ratio")
# Of the scale: coarse, for |residual| is mostly noise, and its median, for its mean is that of a
# few overloaded replicas.
SCALE: Parameters = {"objective": "reg:absoluteerror", "max_depth": 2, "min_child_weight": 20}
SCALE_TREES = 30
# No scale is below this share of the median |residual|: else one lucky leaf has no width. Lower
# made the intervals of simulated trials wider.
FLOOR_OF_MEDIAN = 1.0


def matrix(features: Floats32, label: Floats | None = None) -> xgb.DMatrix:
    return xgb.DMatrix(features, label, missing=np.nan, nthread=1)


def split(services: Texts, parts: int, seed: int) -> list[Mask]:
    """Masks of rows to leave out, whole services at a time, with about as many services each."""
    names = np.unique(services)
    np.random.default_rng(seed).shuffle(names)
    return [np.isin(services, names[part::parts]) for part in range(parts)]


def masked(features: Floats32, label: Floats) -> xgb.DMatrix:
    """All rows, each of them again with one feature unknown, and again without what is of the host.

    Trials know every feature, and a server may not: a service on many hosts has no busy ratio of
    its own. XGBoost then goes where it never went in training: without server_busy_ratio, R² of
    simulated trials was -2.7. With these rows it is 0.5.
    """
    unknown = features.copy()
    rows = np.arange(len(features))
    unknown[rows, np.random.default_rng(SEED).integers(features.shape[1], size=len(rows))] = np.nan
    all_rows = [features, unknown]
    if features.shape[1] == len(FEATURES):
        all_rows.append(without_host(features))
    data = matrix(np.vstack(all_rows), np.tile(label, len(all_rows)))
    data.set_weight(np.repeat([1.0, *[UNKNOWN_WEIGHT] * (len(all_rows) - 1)], len(label)))
    return data


def without_host(features: Floats32) -> Floats32:
    """All features, those of the host unknown."""
    less = features.copy()
    less[:, [FEATURES.index(name) for name in OF_HOST]] = np.nan
    return less


def boost(features: Floats32, label: Floats, chosen: Parameters, trees: int) -> xgb.Booster:
    return xgb.train({**FIXED, **chosen}, masked(features, label), trees)


def predict(booster: xgb.Booster, features: Floats32) -> Floats:
    return np.asarray(booster.predict(matrix(features)), dtype=np.float64)


@dataclass(frozen=True)
class Found:
    chosen: Parameters
    trees: int


def curve(features: Floats32, gain: Floats, out: Mask, chosen: Parameters) -> Floats:
    """The sum of squared errors on the rows left out, by number of trees."""
    watched = matrix(features[out], gain[out])
    log: dict[str, dict[str, list[float]]] = {}
    xgb.train(
        {**FIXED, **chosen, "eval_metric": "rmse"},
        masked(features[~out], gain[~out]),
        MOST_TREES,
        evals=[(watched, "out")],
        evals_result=log,
        verbose_eval=False,
    )
    return np.asarray(np.square(log["out"]["rmse"]) * out.sum(), dtype=np.float64)


def search(features: Floats32, gain: Floats, service: Texts, grid: tuple[Parameters, ...]) -> Found:  # 1
    """The parameters of least squared error on services that were not in the fit."""
    masks = split(service, SEARCH_FOLDS, SEED)
    curves = [sum((curve(features, gain, out, one) for out in masks), np.zeros(MOST_TREES)) for one in grid]
    best = min(range(len(grid)), key=lambda i: float(curves[i].min()))
    return Found(grid[best], int(curves[best].argmin()) + 1)


def forest() -> Pipeline:
    """A peer. Leaves of five rows: fewer follow the noise of a trial."""
    trees = RandomForestRegressor(60, min_samples_leaf=5, max_features=0.5, random_state=SEED, n_jobs=1)
    return make_pipeline(SimpleImputer(strategy="median"), trees)


def line() -> Pipeline:
    """A peer. Scaled, for bandwidth is 10 orders of magnitude above the ratios."""
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), LinearRegression())


@dataclass(frozen=True)
class Interval:
    """The gain is in [prediction + low x scale, prediction + high x scale]."""

    confidence: float
    low: float
    high: float
    scaled: bool  # false: low and high are gains, and the scale is 1


@dataclass(frozen=True)
class Gain:
    """A fitted model. Predictions need the features in this order."""

    features: tuple[str, ...]
    found: Found
    booster_: xgb.Booster
    scale_: xgb.Booster  # of |residual|; of no use where the interval is not scaled
    floor_: float
    interval_: Interval
    constant_: Interval  # number 6, to compare with
    width_: float  # mean, high - low
    width_constant_: float

    def predict(self, features: Floats32) -> Floats:
        return predict(self.booster_, features)

    def scale(self, features: Floats32) -> Floats:
        if not self.interval_.scaled:
            return np.ones(len(features))
        return np.maximum(predict(self.scale_, features), self.floor_)

    def bounds(self, features: Floats32) -> tuple[Floats, Floats]:
        """In float64: each product and each sum is rounded on its own."""
        at, scale = self.predict(features), self.scale(features)
        return at + self.interval_.low * scale, at + self.interval_.high * scale


def unseen(features: Floats32, label: Floats, service: Texts, found: Found, seed: int) -> Floats:
    """The prediction for each row, of a booster that has not seen its service."""
    predicted = np.empty(len(label))
    for out in split(service, FOLDS, seed):
        predicted[out] = predict(boost(features[~out], label[~out], found.chosen, found.trees), features[out])
    return predicted


def conformal(scores: Floats, confidence: float, scaled: bool) -> Interval:
    """Quantiles of scores of rows that were not in the fit: each side leaves out half of what
    may be outside. Infinite: too few rows."""
    n, tail = len(scores), (1 - confidence) / 2
    ordered = np.concatenate([[-np.inf], np.sort(scores), [np.inf]])
    low = int(np.floor((n + 1) * tail + 1e-9))
    return Interval(confidence, float(ordered[low]), float(ordered[n + 1 - low]), scaled)


def width(interval: Interval, scale: Floats) -> float:
    return (interval.high - interval.low) * float(scale.mean())


def fit(trials: Trials, names: tuple[str, ...], confidence: float, grid: tuple[Parameters, ...]) -> Gain:
    features, gain, service = columns(trials, names), trials.gain, trials.service
    found = search(features, gain, service, grid)
    booster = boost(features, gain, found.chosen, found.trees)  # 2
    residual = gain - unseen(features, gain, service, found, SEED)  # 3
    off = np.abs(residual)
    floor = max(FLOOR_OF_MEDIAN * float(np.median(off)), 1e-6)
    how = Found(SCALE, SCALE_TREES)  # 4
    scale = np.maximum(unseen(features, off, service, how, SEED + 1), floor)
    scaled = conformal(residual / scale, confidence, True)  # 5
    constant = conformal(residual, confidence, False)  # 6
    narrow, wide = width(scaled, scale), width(constant, np.ones(1))
    return Gain(
        names,
        found,
        booster,
        boost(features, off, how.chosen, how.trees),
        floor,
        scaled if narrow < wide else constant,
        constant,
        narrow,
        wide,
    )


def columns(trials: Trials, names: tuple[str, ...]) -> Floats32:
    """The named features, in that order."""
    return np.ascontiguousarray(trials.features[:, [FEATURES.index(name) for name in names]])


def describe(gain: Gain) -> str:
    """What was chosen."""
    kind, other = ("scaled", "constant") if gain.interval_.scaled else ("constant", "scaled")
    widths = sorted((gain.width_, gain.width_constant_))
    return (
        f"{gain.found.trees} trees of depth {gain.found.chosen['max_depth']}; intervals are {kind}, "
        f"mean width {widths[0]:.4f} ({other}: {widths[1]:.4f})"
    )
