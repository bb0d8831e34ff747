# SPDX-License-Identifier: Apache-2.0
"""Writes the file that internal/model (Go) evaluates, and rows that it must reproduce.

scikit-learn casts inputs to float32, goes left where input <= threshold (float64), adds the
trees' outputs in order in float64, and divides by their number. JSON keeps every float64:
repr writes the shortest text that reads back to the same bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .data import DataSet
from .fit import Forest, ratios

SCHEMA = 1
KIND = "homenode-placements"
# What internal/model takes; a model that needs more is refused there.
SOURCE_KEYS = ("source", "commit", "seed", "generator_version")


def feature_names(forest: Forest) -> list[str]:
    return [f"speed[{p}]/speed[{forest.probes[0]}]" for p in forest.probes[1:]]


def tree(estimator: Any) -> dict[str, Any]:
    """Nodes as arrays. A leaf has feature -1, and its row of values in left."""
    t = estimator.tree_
    leaf = t.children_left < 0
    rows = np.cumsum(leaf) - 1
    return {
        "feature": np.where(leaf, -1, t.feature).tolist(),
        "threshold": np.where(leaf, 0.0, t.threshold).tolist(),
        "left": np.where(leaf, rows, t.children_left).tolist(),
        "right": np.where(leaf, 0, t.children_right).tolist(),
        "values": t.value[leaf, :, 0].tolist(),
    }


def model(data: DataSet, forests: list[Forest], error: float | None, left_out: str = "") -> dict[str, Any]:
    """error is the mean error with a kind left out, also of the choice of probes; None: not measured.
    left_out is the kind of workload that this model has not seen."""
    about = {key: data.about.get(key, "unknown") for key in SOURCE_KEYS}
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "made_by": f"homenode_model {__version__}",
        **about,
        "data_sha256": data.sha256,
        "machine": data.about["machine"],
        "vcpus": int(data.about["vcpus"]),
        "workloads": len(data.speed),
        "error": error,
        **({"left_out": left_out} if left_out else {}),
        "placements": [{"nodes": p.nodes, "cpus": p.cpus, "scores": p.scores} for p in data.placements],
        "forests": [
            {
                "probes": list(f.probes),
                "features": feature_names(f),
                "confidence": f.confidence,
                "interval": [float(x) if np.isfinite(x) else None for x in f.interval_],
                "ratios": f.ratios_.T.tolist(),
                "trees": [tree(e) for e in f.trees_.estimators_],
            }
            for f in forests
        ],
    }


def golden(data: DataSet, forests: list[Forest], rows: int) -> dict[str, Any]:
    """Speeds and what scikit-learn predicts from them."""
    few = data.keep(np.arange(len(data.speed)) % max(1, len(data.speed) // rows) == 0)
    return {
        "schema": SCHEMA,
        "forests": [{"inputs": ratios(few, f.probes).tolist(), "outputs": f.predict(few).tolist()} for f in forests],
    }


def write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n", encoding="utf-8")
