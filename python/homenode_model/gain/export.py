# SPDX-License-Identifier: Apache-2.0
"""Writes the model (two boosters and a manifest), and rows that homenode must reproduce.

To get the bits of XGBoost 3.2.0 (test_gain.py does it in Python, from the saved model):

 1. Features are cast to float32, in the manifest's order. Unknown is NaN.
 2. In a node: NaN goes by default_left; else left if x < split_conditions, both float32, else
    right. A leaf has left_children -1, and its value in split_conditions.
 3. The sum starts with base_score and adds the leaf of each tree, in order, each time in
    float32. Adding base_score last gives other bits.
 4. base_score is in the model as text, a list of one: "[6.1E-2]", the shortest that reads back
    to the same float32. Both objectives here have the identity as link, so it is in the unit of
    the gain and nothing is transformed. The manifest has it as a number.
 5. From here on in float64: scale = max(scale booster, floor), or 1 without a scale;
    low = prediction + (interval.low x scale), and the same for high. Product and sum are rounded
    on their own: no fused multiply-add.

JSON keeps every float64: repr writes the shortest text that reads back to the same bits. A
float32 is written as the float64 of the same value.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from .. import __version__
from ..data import Floats
from .data import CLIPPED_AT, LABEL, Floats32, Trials
from .fit import Gain, columns

SCHEMA = 1
KIND = "homenode-gain"
GOLDEN_ROWS = 40
# Of training rows: what is outside is called out of distribution, 1 row of 100 for each feature. Up
# to 1 % beyond counts as inside: where training saw an NPMR of 1 only, a measured 0.9997 is not
# strange.
RANGE = (0.005, 0.995)
BEYOND = 0.01
DECILES = np.arange(1, 10) / 10


def base_score(booster: xgb.Booster) -> float:
    text = json.loads(booster.save_config())["learner"]["learner_model_param"]["base_score"]
    (value,) = json.loads(text)
    return float(np.float32(value))


def write_booster(path: Path, booster: xgb.Booster) -> str:
    """Writes it as UBJSON and returns its SHA-256."""
    raw = bytes(booster.save_raw("ubj"))
    path.write_bytes(raw)
    return hashlib.sha256(raw).hexdigest()


def span(values: Floats) -> tuple[float, float]:
    low, high = np.nanquantile(values, RANGE)
    return float(low - BEYOND * abs(low)), float(high + BEYOND * abs(high))


def describe(name: str, values: Floats) -> dict[str, Any]:
    """What training rows look like. edges are for a population stability index: a tenth of them
    is between two, so a server whose rows are not spread so has drifted."""
    low, high = span(values)
    return {
        "name": name,
        "low": low,
        "high": high,
        "median": float(np.nanmedian(values)),
        "edges": [float(x) for x in np.nanquantile(values, DECILES)],
    }


def source(trials: Trials) -> str:
    names = np.unique(trials.source)
    return str(names[0]) if len(names) == 1 else "mixed"


def write(path: Path, trials: Trials, gain: Gain, scores: dict[str, Any] | None) -> None:
    """Writes the boosters, and the manifest beside them. scores are None if nothing was evaluated."""
    scale_path, manifest_path = path.with_suffix(".scale.ubj"), path.with_suffix(".json")
    booster = {
        "file": path.name,
        "sha256": write_booster(path, gain.booster_),
        "trees": gain.booster_.num_boosted_rounds(),
        "base_score": base_score(gain.booster_),
    }
    scale_path.unlink(missing_ok=True)  # One of another run does not belong to this model.
    scale = None
    if gain.interval_.scaled:
        digest = write_booster(scale_path, gain.scale_)
        scale = {
            "file": scale_path.name,
            "sha256": digest,
            "trees": gain.scale_.num_boosted_rounds(),
            "base_score": base_score(gain.scale_),
            "floor": gain.floor_,
        }
    write_json(manifest_path, manifest(trials, gain, booster, scale, scores))


def manifest(
    trials: Trials,
    gain: Gain,
    booster: dict[str, Any],
    scale: dict[str, Any] | None,
    scores: dict[str, Any] | None,
) -> dict[str, Any]:
    values = columns(trials, gain.features).astype(np.float64)
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "made_by": f"homenode_model {__version__}, xgboost {xgb.__version__}",
        "source": source(trials),
        "machines": [str(m) for m in np.unique(trials.machine)],
        "seeds": [int(s) for s in np.unique(trials.seed)],
        "generator_version": trials.generator,
        "command": trials.command,
        "data_sha256": trials.sha256,
        "rows": len(trials.gain),
        "services": len(np.unique(trials.service)),
        "features": [describe(name, column) for name, column in zip(gain.features, values.T)],
        "label": LABEL,
        "clipped_at": CLIPPED_AT,
        "booster": booster,
        "scale": scale,
        "interval": {
            "confidence": gain.interval_.confidence,
            "low": gain.interval_.low,
            "high": gain.interval_.high,
            # The mean width of both kinds at the same confidence: the narrower was kept.
            "width_scaled": gain.width_,
            "width_constant": gain.width_constant_,
        },
        "scores": scores,
    }


def golden_inputs(trials: Trials, gain: Gain) -> Floats32:
    """Rows at equal steps of the prediction, from the least to the most. The last nine lack one
    feature each, and the one before them lacks all."""
    features = columns(trials, gain.features)
    order = np.argsort(gain.predict(features), kind="stable")
    few: Floats32 = features[order[np.linspace(0, len(order) - 1, GOLDEN_ROWS).round().astype(int)]]
    for at in range(few.shape[1]):
        few[-1 - at, at] = np.nan
    few[-1 - few.shape[1]] = np.nan
    return few


def golden(trials: Trials, gain: Gain) -> dict[str, Any]:
    """Inputs (null: unknown), and what XGBoost predicts from them."""
    inputs = golden_inputs(trials, gain)
    low, high = gain.bounds(inputs)
    return {
        "schema": SCHEMA,
        "features": list(gain.features),
        "inputs": [[None if np.isnan(x) else float(x) for x in row] for row in inputs],
        "prediction": gain.predict(inputs).tolist(),
        "scale": gain.scale(inputs).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")
