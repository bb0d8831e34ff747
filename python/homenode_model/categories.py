# SPDX-License-Identifier: Apache-2.0
"""Which workloads react alike: k-means over their speeds in all placements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from .data import DataSet, Floats
from .fit import SEED, targets

MOST = 10


@dataclass(frozen=True)
class Categories:
    silhouettes: dict[int, float]  # by number of categories
    k: int  # the one with the best silhouette
    centers: Floats  # speed relative to the baseline, by placement
    labels: npt.NDArray[np.int_]


def categorise(data: DataSet, baseline: int) -> Categories:
    rows = targets(data, baseline)
    by = {k: KMeans(k, n_init=5, random_state=SEED).fit(rows) for k in range(2, min(MOST, len(rows) - 1) + 1)}
    silhouettes = {k: float(silhouette_score(rows, m.labels_)) for k, m in by.items() if len(np.unique(m.labels_)) > 1}
    k = max(silhouettes, key=lambda n: silhouettes[n])
    return Categories(silhouettes, k, by[k].cluster_centers_, by[k].labels_)
