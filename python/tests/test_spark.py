# SPDX-License-Identifier: Apache-2.0
"""Runs where pyspark and a Java runtime are: scripts/model.sh spark."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import unittest
from pathlib import Path

import numpy as np
from homenode_model.data import BadData
from homenode_model.gain import spark
from homenode_model.gain.data import FEATURES, read
from homenode_model.gain.evaluate import r2
from homenode_model.gain.fit import QUICK, columns, fit, predict

TRIALS = Path(os.environ.get("HOMENODE_TRIALS", Path(__file__).parent / "testdata/trials.parquet"))


@unittest.skipUnless(importlib.util.find_spec("pyspark"), "pyspark is not installed")
class Spark(unittest.TestCase):
    def test_same_model(self) -> None:
        """Spark divides the rows, so that trees are others; what they predict is nearly the same."""
        trials = read(TRIALS)
        here = fit(trials, FEATURES, 0.9, QUICK)
        there = spark.boost([TRIALS], here.found, "local[2]")
        self.assertEqual(there.num_boosted_rounds(), here.found.trees)
        self.assertIsNone(there.feature_names)
        features = columns(trials, FEATURES)
        ours, theirs = here.predict(features), predict(there, features)
        self.assertGreater(r2(ours, theirs), 0.9)
        self.assertAlmostEqual(r2(trials.gain, theirs), r2(trials.gain, ours), delta=0.05)
        self.assertTrue(np.isfinite(predict(there, np.full((1, len(FEATURES)), np.nan, dtype=np.float32))).all())
        for master in ("nonsense", "local", "local[1]", "spark://elsewhere:7077"):
            with self.assertRaisesRegex(BadData, "no cluster was tried"):
                spark.boost([TRIALS], here.found, master)

    def test_command(self) -> None:
        from homenode_model.__main__ import main

        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "gain.ubj")
            self.assertEqual(main(["gain", str(TRIALS), "--quick", "--spark", "local[2]", "--model", str(model)]), 0)
            self.assertTrue(model.exists() and model.with_suffix(".json").exists())


if __name__ == "__main__":
    unittest.main()
