# SPDX-License-Identifier: Apache-2.0
"""How well gains are predicted, beside what any prediction could reach.

1. The ceiling. A trial is repeated with other arrivals: the correlation of the two is the R²
   of a prediction that knows each replica's expected gain. Its mean error is about
   mean |first - second| / sqrt(2); that holds for normal noise, and noise here has a longer tail.
   Each score has the ceiling of the same rows.
2. MAO's protocol: rows are split at random, 85 to 15, and four features are used. Replicas of
   one service are on both sides.
3. Services held out: none is in both parts. Parameters are searched in the training part.
4. Intervals and signs are those of 3.
5. Kinds held out: a kind of service that the model has never seen.
6. Features that a server cannot measure: the same held-out rows without one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Floats
from ..fit import SEED
from .data import FEATURES, PAPER, Floats32, Trials
from .fit import (
    FOLDS,
    GRID,
    QUICK,
    Gain,
    Mask,
    Parameters,
    boost,
    columns,
    fit,
    forest,
    line,
    matrix,
    predict,
    search,
    split,
)

XGBOOST, FOREST, LINE = "XGBoost", "random forest", "linear regression"
RANDOM, SERVICES, KINDS = "random rows, as in the paper", "services held out", "kinds held out"
FOUR, ALL = "four", "all"
SETS = {FOUR: PAPER, ALL: FEATURES}
TEST_SHARE = 0.15
# A gain that is less than this, as the mean of two trials, may have its sign from the noise.
CLEAR_GAIN = 0.05
# MAO: R² and MAE on 300 of 2,000 samples of Baidu's servers.
IN_THE_PAPER = {XGBOOST: (0.92, 0.025), FOREST: (0.87, 0.035), LINE: (0.19, 0.086)}
# What is to be reached, as shares of the ceiling, and of rows. None was moved after a result.
LEAST_RANDOM, LEAST_SERVICES_R2, COVERAGE_WITHIN = 0.97, 0.85, 0.02


@dataclass(frozen=True)
class Size:
    """How much is evaluated."""

    grid: tuple[Parameters, ...]
    random: int  # repeats
    services: int  # repeats of FOLDS folds


FULL, SMALL = Size(GRID, 20, 3), Size(QUICK, 2, 1)


def r2(actual: Floats, predicted: Floats) -> float:
    spread = float(np.square(actual - actual.mean()).sum())
    return 1 - float(np.square(actual - predicted).sum()) / spread if spread > 0 else float("nan")


def mae(actual: Floats, predicted: Floats) -> float:
    return float(np.abs(actual - predicted).mean())


def reliability(trials: Trials) -> float:  # 1
    if trials.gain.std() == 0 or trials.again.std() == 0:
        return float("nan")
    return float(np.corrcoef(trials.gain, trials.again)[0, 1])


def retest_mae(trials: Trials) -> float:
    return mae(trials.gain, trials.again) / float(np.sqrt(2))


@dataclass(frozen=True)
class Score:
    """One model, set of features and protocol. Means over repeats, with the least and the most."""

    protocol: str
    features: str  # FOUR or ALL
    model: str
    r2: float
    r2_range: tuple[float, float]
    mae: float
    mae_range: tuple[float, float]
    ceiling_r2: float  # of the same rows
    ceiling_mae: float

    @property
    def share_r2(self) -> float:
        return self.r2 / self.ceiling_r2

    @property
    def share_mae(self) -> float:
        """1 is as good as possible, as with R²: the ceiling's error over this error."""
        return self.ceiling_mae / self.mae


@dataclass(frozen=True)
class Test:
    """Rows that were held out, and what was predicted for them."""

    rows: Trials
    predicted: Floats


def score(protocol: str, features: str, model: str, tests: list[Test]) -> Score:
    r2s, maes = [r2(t.rows.gain, t.predicted) for t in tests], [mae(t.rows.gain, t.predicted) for t in tests]
    return Score(
        protocol,
        features,
        model,
        float(np.mean(r2s)),
        (min(r2s), max(r2s)),
        float(np.mean(maes)),
        (min(maes), max(maes)),
        float(np.mean([reliability(t.rows) for t in tests])),
        float(np.mean([retest_mae(t.rows) for t in tests])),
    )


Model = Callable[[Floats32], Floats]


def boosted(learn: Trials, names: tuple[str, ...], grid: tuple[Parameters, ...]) -> Model:
    """The parameters are searched in these rows only."""
    features = columns(learn, names)
    found = search(features, learn.gain, learn.service, grid)
    booster = boost(features, learn.gain, found.chosen, found.trees)
    return lambda rows: predict(booster, rows)


def peers(learn: Trials, names: tuple[str, ...]) -> dict[str, Model]:
    features = columns(learn, names)
    models = {FOREST: forest().fit(features, learn.gain), LINE: line().fit(features, learn.gain)}
    return {
        name: lambda rows, model=model: np.asarray(model.predict(rows), dtype=np.float64)  # type: ignore[misc]
        for name, model in models.items()
    }


def random_rows(trials: Trials, size: Size) -> list[Score]:  # 2
    tests: dict[str, list[Test]] = {name: [] for name in IN_THE_PAPER}
    for repeat in range(size.random):
        order = np.random.default_rng(SEED + repeat).permutation(len(trials.gain))
        out = np.isin(np.arange(len(order)), order[: round(TEST_SHARE * len(order))])
        learn, check = trials.keep(~out), trials.keep(out)
        for name, model in {XGBOOST: boosted(learn, PAPER, size.grid), **peers(learn, PAPER)}.items():
            tests[name].append(Test(check, model(columns(check, PAPER))))
    return [score(RANDOM, FOUR, name, some) for name, some in tests.items()]


@dataclass(frozen=True)
class HeldOut:
    """One repeat: each row was predicted by a model that has not seen its service."""

    predicted: Floats
    low: Floats
    high: Floats
    constant: Mask  # the gain is inside the interval of constant width
    without: dict[str, Floats]  # by the feature that was unknown
    median: dict[str, Floats]  # by the feature that was replaced by its median

    @staticmethod
    def empty(rows: int) -> HeldOut:
        def each() -> dict[str, Floats]:
            return {name: np.empty(rows) for name in FEATURES}

        return HeldOut(np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows, bool), each(), each())

    def add(self, out: Mask, check: Trials, learn: Trials, model: Gain) -> None:
        features = columns(check, FEATURES)
        self.predicted[out] = model.predict(features)
        self.low[out], self.high[out] = model.bounds(features)
        off = check.gain - self.predicted[out]
        self.constant[out] = (off >= model.constant_.low) & (off <= model.constant_.high)
        for at, name in enumerate(FEATURES):
            for held, value in ((self.without, np.nan), (self.median, np.nanmedian(learn.features[:, at]))):
                changed = features.copy()
                changed[:, at] = value
                held[name][out] = model.predict(changed)


Predicted = dict[tuple[str, str], Floats]  # by set of features and model


def hold_out_once(trials: Trials, gain: Gain, size: Size, repeat: int) -> tuple[HeldOut, Predicted]:  # 3
    one = HeldOut.empty(len(trials.gain))
    got = {(s, m): np.empty(len(trials.gain)) for s in SETS for m in IN_THE_PAPER}
    for out in split(trials.service, FOLDS, SEED + 100 + repeat):
        learn, check = trials.keep(~out), trials.keep(out)
        one.add(out, check, learn, fit(learn, FEATURES, gain.interval_.confidence, size.grid))
        got[FOUR, XGBOOST][out] = boosted(learn, PAPER, size.grid)(columns(check, PAPER))
        for features, names in SETS.items():
            for name, model in peers(learn, names).items():
                got[features, name][out] = model(columns(check, names))
    return one, {**got, (ALL, XGBOOST): one.predicted}


def held_out(trials: Trials, gain: Gain, size: Size) -> list[tuple[HeldOut, Predicted]]:
    return [hold_out_once(trials, gain, size, repeat) for repeat in range(size.services)]


def service_scores(trials: Trials, repeats: list[tuple[HeldOut, Predicted]]) -> list[Score]:
    """Folds are put together, so that a score is of all rows: one fold has few overloaded replicas."""
    return [
        score(SERVICES, features, name, [Test(trials, predicted[features, name]) for _, predicted in repeats])
        for features, name in repeats[0][1]
    ]


@dataclass(frozen=True)
class KindScore:
    rows: int
    ceiling: float  # reliability within the kind
    r2: float  # services held out
    r2_left_out: float  # the whole kind held out
    coverage: float
    coverage_constant: float
    width: float  # mean


def kinds_left_out(trials: Trials, size: Size) -> dict[str, Floats]:  # 5
    """Predictions by set of features. Nothing, if there is one kind."""
    if len(np.unique(trials.kind)) < 2:
        return {}
    got = {name: np.empty(len(trials.gain)) for name in SETS}
    for kind in np.unique(trials.kind):
        out = trials.kind == kind
        learn, check = trials.keep(~out), trials.keep(out)
        for features, names in SETS.items():
            got[features][out] = boosted(learn, names, size.grid)(columns(check, names))
    return got


def inside(trials: Trials, repeats: list[HeldOut]) -> npt.NDArray[np.bool_]:
    """Whether the gain is in its interval, repeat by row."""
    return np.array([(r.low <= trials.gain) & (trials.gain <= r.high) for r in repeats])


def by_kind(trials: Trials, repeats: list[HeldOut], left_out: Floats | None) -> dict[str, KindScore]:
    covered, scores = inside(trials, repeats), {}
    for kind in np.unique(trials.kind):
        rows = trials.kind == kind
        some = trials.keep(rows)
        scores[str(kind)] = KindScore(
            int(rows.sum()),
            reliability(some),
            float(np.mean([r2(some.gain, r.predicted[rows]) for r in repeats])),
            float("nan") if left_out is None else r2(some.gain, left_out[rows]),
            float(covered[:, rows].mean()),
            float(np.mean([r.constant[rows].mean() for r in repeats])),
            float(np.mean([(r.high - r.low)[rows].mean() for r in repeats])),
        )
    return scores


@dataclass(frozen=True)
class Signs:
    """Of replicas whose gain is clear: is it predicted whether binding helps or hurts?"""

    rows: int
    right: float
    helped: float  # share that binding helps: as many are right if that is always said
    hurt_rows: int
    hurt_found: float  # of those that binding hurts


def signs(trials: Trials, repeats: list[HeldOut]) -> Signs:  # 4
    both = (trials.gain + trials.again) / 2
    clear, hurt = np.abs(both) > CLEAR_GAIN, both < -CLEAR_GAIN
    right = np.array([np.sign(r.predicted) == np.sign(both) for r in repeats])
    return Signs(
        int(clear.sum()),
        mean(right[:, clear]),
        mean((both > 0)[clear]),
        int(hurt.sum()),
        mean(right[:, hurt]),
    )


def mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")


def importance(trials: Trials, gain: Gain) -> dict[str, float]:
    """Mean |SHAP| by feature: how far it moves a prediction, in the unit of the gain."""
    contributions = gain.booster_.predict(matrix(columns(trials, gain.features)), pred_contribs=True)
    return {name: float(x) for name, x in zip(gain.features, np.abs(contributions[:, :-1]).mean(axis=0))}


@dataclass(frozen=True)
class Target:
    name: str
    value: float
    least: float
    most: float = float("inf")

    @property
    def met(self) -> bool:
        return self.least <= self.value <= self.most


@dataclass(frozen=True)
class Result:
    rows: Trials
    ceiling_r2: float
    ceiling_mae: float
    scores: tuple[Score, ...]
    repeats: tuple[HeldOut, ...]
    kinds: dict[str, KindScore]
    coverage: float
    coverage_constant: float
    width: float
    signs: Signs
    importance: dict[str, float]
    unknown: dict[str, tuple[float, float]]  # R² without a feature, and with its median
    targets: tuple[Target, ...]


def score_of(scores: list[Score], protocol: str, features: str, model: str) -> Score:
    return next(s for s in scores if (s.protocol, s.features, s.model) == (protocol, features, model))


def targets(scores: list[Score], coverage: float, confidence: float) -> tuple[Target, ...]:
    random, services = score_of(scores, RANDOM, FOUR, XGBOOST), score_of(scores, SERVICES, ALL, XGBOOST)
    return (
        Target(f"{RANDOM}, four features: R² / ceiling", random.share_r2, LEAST_RANDOM),
        Target(f"{RANDOM}, four features: ceiling / MAE", random.share_mae, LEAST_RANDOM),
        Target(f"{SERVICES}, all features: R² / ceiling", services.share_r2, LEAST_SERVICES_R2),
        Target(
            f"coverage of {100 * confidence:.0f}% intervals",
            coverage,
            round(confidence - COVERAGE_WITHIN, 6),
            round(confidence + COVERAGE_WITHIN, 6),
        ),
    )


def unknown_features(trials: Trials, repeats: list[HeldOut]) -> dict[str, tuple[float, float]]:  # 6
    def of(held: list[Floats]) -> float:
        return float(np.mean([r2(trials.gain, p) for p in held]))

    return {n: (of([r.without[n] for r in repeats]), of([r.median[n] for r in repeats])) for n in FEATURES}


def evaluate(trials: Trials, gain: Gain, size: Size) -> Result:
    return result(trials, gain, random_rows(trials, size), held_out(trials, gain, size), kinds_left_out(trials, size))


def result(
    trials: Trials,
    gain: Gain,
    random: list[Score],
    services: list[tuple[HeldOut, Predicted]],
    kinds: dict[str, Floats],
) -> Result:
    repeats, confidence = [one for one, _ in services], gain.interval_.confidence
    scores = random + service_scores(trials, services)
    scores += [score(KINDS, name, XGBOOST, [Test(trials, p)]) for name, p in kinds.items()]
    coverage = mean(inside(trials, repeats))
    return Result(
        trials,
        reliability(trials),
        retest_mae(trials),
        tuple(scores),
        tuple(repeats),
        by_kind(trials, repeats, kinds.get(ALL)),
        coverage,
        float(np.mean([r.constant.mean() for r in repeats])),
        float(np.mean([(r.high - r.low).mean() for r in repeats])),
        signs(trials, repeats),
        importance(trials, gain),
        unknown_features(trials, repeats),
        targets(scores, coverage, confidence),
    )


def summary(result: Result) -> dict[str, Any]:
    """For the manifest, with the names of the card. Unknown is None."""

    def known(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    return {
        "ceiling": {"r2": known(result.ceiling_r2), "mae": known(result.ceiling_mae)},
        "protocols": [
            {
                "protocol": s.protocol,
                "features": s.features,
                "model": s.model,
                "r2": known(s.r2),
                "r2_range": [known(x) for x in s.r2_range],
                "r2_of_ceiling": known(s.share_r2),
                "mae": known(s.mae),
                "mae_range": [known(x) for x in s.mae_range],
                "mae_of_ceiling": known(s.share_mae),
            }
            for s in result.scores
        ],
        "coverage": known(result.coverage),
        "coverage_constant": known(result.coverage_constant),
        "width": known(result.width),
        "kinds": {kind: {k: known(v) for k, v in vars(s).items()} for kind, s in result.kinds.items()},
        "signs": {k: known(v) for k, v in vars(result.signs).items()},
        "importance": result.importance,
        "unknown": {n: {"default_direction": known(a), "median": known(b)} for n, (a, b) in result.unknown.items()},
        "targets": [{"name": t.name, "value": known(t.value), "met": t.met} for t in result.targets],
    }


def lines(result: Result) -> list[str]:
    """The figures, for a terminal."""
    out = [f"ceiling of all rows: R² {result.ceiling_r2:.3f}, MAE {result.ceiling_mae:.4f}"]
    for s in result.scores:
        out.append(
            f"{s.protocol}, {s.features} features, {s.model}: R² {s.r2:.3f} ({s.r2_range[0]:.3f} to {s.r2_range[1]:.3f}), "
            f"{s.share_r2:.3f} of the ceiling; MAE {s.mae:.4f} ({s.mae_range[0]:.4f} to {s.mae_range[1]:.4f}), {s.share_mae:.3f}"
        )
    out.append(
        f"intervals cover {result.coverage:.3f}, mean width {result.width:.4f}; constant ones cover {result.coverage_constant:.3f}"
    )
    for kind, k in result.kinds.items():
        out.append(
            f"{kind}: {k.rows} rows, R² {k.r2:.3f} (ceiling {k.ceiling:.3f}, left out {k.r2_left_out:.3f}), "
            f"covered {k.coverage:.3f} (constant {k.coverage_constant:.3f}), width {k.width:.4f}"
        )
    g = result.signs
    out.append(
        f"sign right in {g.right:.3f} of {g.rows} replicas ({g.helped:.3f} are helped); found {g.hurt_found:.3f} of {g.hurt_rows} that are hurt"
    )
    out += [f"mean |SHAP| of {n}: {x:.4f}" for n, x in result.importance.items()]
    out += [f"{n} unknown: R² {a:.3f}; its median instead {b:.3f}" for n, (a, b) in result.unknown.items()]
    return out + [f"{'ok' if t.met else 'UNMET'}: {wanted(t)}" for t in result.targets]


def wanted(target: Target) -> str:
    most = f" to {target.most:.2f}" if np.isfinite(target.most) else " or more"
    return f"{target.name}: {target.value:.3f}, target {target.least:.2f}{most}"
