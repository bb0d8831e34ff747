# SPDX-License-Identifier: Apache-2.0
"""How good a model is for trials of another kind: trained in the simulator, tried in the lab.

1. Signs, of trials whose gain is clear: the mean of both halves is above CLEAR_GAIN and its
   halves agree. That is the target.
2. R² and error, beside the ceiling of the same rows, and the order (Spearman).
3. How many are inside their intervals, and how many have a feature that training did not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import BadData, Floats
from .data import FEATURES, Trials, keys, read_some
from .evaluate import CLEAR_GAIN, Target, mae, mean, r2, reliability, retest_mae, wanted
from .export import span
from .fit import Gain, columns


@dataclass(frozen=True)
class Elsewhere:
    """A model on trials that are none of its own."""

    source: str
    rows: int
    services: int
    clear: int
    right: float  # of the clear ones
    helped: float  # share of the clear ones that binding helps
    hurt: int  # of the clear ones
    hurt_found: float
    r2: float
    mae: float
    ceiling_r2: float
    ceiling_mae: float
    order: float  # Spearman
    coverage: float
    outside: dict[str, float]  # share of the rows, by feature, that is outside of what training saw

    @property
    def target(self) -> Target:
        return Target(f"sign where a gain of {self.source} is clear", self.right, 1.0)

    @property
    def verdict(self) -> str:
        if not self.clear:
            return "no trial of them has a clear gain or loss: nothing is judged"
        return f"{'ok' if self.target.met else 'UNMET'}: {wanted(self.target)}"


def read_others(trials: Trials, paths: list[Path]) -> Trials:
    """Raises BadData where a trial is among those of the training."""
    others = read_some(*paths)
    twice = sorted(keys(trials) & keys(others))
    if twice:
        raise BadData(f"read {paths[0]}: replica {twice[0][-1]} is in the training, too")
    return others


def judge(trials: Trials, gain: Gain, others: Trials) -> Elsewhere:
    features = columns(others, FEATURES)
    predicted, (low, high) = gain.predict(features), gain.bounds(features)
    both = (others.gain + others.again) / 2
    clear = (np.abs(both) > CLEAR_GAIN) & (np.sign(others.gain) == np.sign(others.again))
    hurt, right = clear & (both < 0), np.sign(predicted) == np.sign(both)
    known = trials.features.astype(np.float64)
    seen = {name: span(known[:, at]) for at, name in enumerate(FEATURES)}
    return Elsewhere(
        ", ".join(np.unique(others.source)),
        len(both),
        len(np.unique(others.service)),
        int(clear.sum()),
        mean(right[clear]),
        mean((both > 0)[clear]),
        int(hurt.sum()),
        mean(right[hurt]),
        r2(both, predicted),
        mae(both, predicted),
        reliability(others),
        retest_mae(others),
        float(np.corrcoef(ranks(both), ranks(predicted))[0, 1]) if len(both) > 1 else float("nan"),
        mean((low <= others.gain) & (others.gain <= high)),
        {
            name: mean((others.features[:, at] < seen[name][0]) | (others.features[:, at] > seen[name][1]))
            for at, name in enumerate(FEATURES)
        },
    )


def ranks(values: Floats) -> Floats:
    return np.argsort(np.argsort(values)).astype(np.float64)


def lines(e: Elsewhere) -> list[str]:
    strange = ", ".join(f"{n} {100 * x:.0f}%" for n, x in e.outside.items() if x > 0)
    return [
        (
            f"on {e.rows} trials of {e.services} services, source {e.source}: R² {e.r2:.3f} (ceiling {e.ceiling_r2:.3f}), "
            f"MAE {e.mae:.4f} (ceiling {e.ceiling_mae:.4f}), order {e.order:.2f}; intervals cover {e.coverage:.3f}"
        ),
        f"sign right in {e.right:.3f} of {e.clear} with a clear gain or loss ({e.helped:.3f} are helped); found {e.hurt_found:.3f} of {e.hurt} that are hurt",
        f"outside of what training saw: {strange or 'none'}",
    ]


def summary(e: Elsewhere) -> dict[str, Any]:
    return {k: (float(v) if np.isfinite(v) else None) if isinstance(v, float) else v for k, v in vars(e).items()}
