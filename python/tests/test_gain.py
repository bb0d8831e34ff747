# SPDX-License-Identifier: Apache-2.0
"""scripts/model.sh test

testdata/trials.parquet: all replicas of 128 services of 'homenode-lab sim trials --fleets 48
--servers 10 --seed 1 --machine dual-skylake', chosen at random.
testdata/lab-trials.parquet: the services of the mixes of seeds 1 to 43 and 45, tried in the lab by scripts/lab-trials.sh.
"""

from __future__ import annotations

import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xgboost as xgb
from homenode_model.__main__ import main
from homenode_model.data import BadData
from homenode_model.gain import elsewhere
from homenode_model.gain.data import AGAIN, CLIPPED_AT, FEATURES, LABEL, PAPER, read
from homenode_model.gain.evaluate import Test, reliability, retest_mae, score
from homenode_model.gain.export import golden
from homenode_model.gain.fit import QUICK, boost, columns, conformal, fit, forest, line, predict, split

TRIALS = Path(__file__).parent / "testdata/trials.parquet"
LAB = TRIALS.with_name("lab-trials.parquet")
EXPERIMENT = Path(__file__).parents[2] / "internal/profiling/host/testdata/experiment.parquet"
FILES = ("gain.ubj", "gain.scale.ubj", "gain.json", "golden.json")


def train(folder: str, *more: str) -> int:
    at = Path(folder)
    return main(
        ["gain", str(TRIALS), "--quick", "--model", str(at / "gain.ubj"), "--golden", str(at / "golden.json"), *more]
    )


def changed(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    at = table.schema.get_field_index(name)
    field = table.schema.field(at)
    return table.set_column(at, field, pa.array(values, field.type))


class Data(unittest.TestCase):
    def test_lab(self) -> None:
        """Rows of the lab say so, and can be learned from beside simulated ones."""
        lab, both = read(LAB), read(TRIALS, LAB)
        self.assertEqual(set(lab.source), {"modelled (lab)"})
        self.assertEqual(len(both.gain), len(read(TRIALS).gain) + len(lab.gain))
        self.assertEqual(set(both.source), {"simulator", "modelled (lab)"})

    def setUp(self) -> None:
        self.table = pq.read_table(TRIALS)

    def with_first(self, name: str, value: Any) -> pa.Table:
        return changed(self.table, name, [value, *self.table.column(name).to_pylist()[1:]])

    def about(self, **more: str) -> pa.Table:
        added = {f"homenode.{k}".encode(): v.encode() for k, v in more.items()}
        return self.table.replace_schema_metadata({**self.table.schema.metadata, **added})

    def test_refused(self) -> None:
        same = changed(self.table, LABEL, [0.1] * self.table.num_rows)
        no_msr = changed(self.table, "msr_ratio", [None] * self.table.num_rows)
        one = self.table.filter(pc.equal(self.table["service_hash"], self.table["service_hash"][0]))
        cases = {
            "its kind is not given, not homenode-trials": self.table.replace_schema_metadata({}),
            "its kind is homenode-fleet, not homenode-trials": self.about(kind="homenode-fleet"),
            "schema 3 is newer than 2": self.about(schema="3.1"),
            "its schema is x, not a number": self.about(schema="x"),
            "it has no rows": self.table.slice(0, 0),
            "it has no column npmr_ratio": self.table.drop_columns(["npmr_ratio"]),
            "it has no column gain_latency_again_ratio": self.table.drop_columns([AGAIN]),
            "gain_latency_ratio of row 0 is not a finite number": self.with_first(LABEL, None),
            "gain_latency_again_ratio of row 0 is not a finite number": self.with_first(AGAIN, float("inf")),
            "mbw_bytes_per_s of row 0 is infinite": self.with_first("mbw_bytes_per_s", float("inf")),
            "source of row 0 is not given": self.with_first("source", ""),
            "rows of generator_version 1 and 2": self.with_first("generator_version", 2),
            "too few services: 1; ": one,
            "every trial has the same gain": same,
            "msr_ratio is unknown in every row": no_msr,
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trials.parquet")
            for want, bad in cases.items():
                pq.write_table(bad, path)
                with self.assertRaisesRegex(BadData, want):
                    read(path)
            path.write_text("no parquet")
            with self.assertRaisesRegex(BadData, "read"):
                read(path)
            self.assertEqual(main(["gain", str(path)]), 2)
            self.assertEqual(main(["gain", str(TRIALS), "--model", str(Path(folder, "none", "gain.ubj"))]), 2)

    def test_clipped_and_unknown(self) -> None:
        """A gain below the clip is the clip, in both trials; a feature that is null is NaN."""
        table = changed(self.table, LABEL, [-50.0, *self.table.column(LABEL).to_pylist()[1:]])
        table = changed(table, AGAIN, [-0.6, *self.table.column(AGAIN).to_pylist()[1:]])
        table = changed(table, FEATURES[5], [None, *self.table.column(FEATURES[5]).to_pylist()[1:]])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trials.parquet")
            pq.write_table(table, path)
            trials = read(path)
        self.assertEqual((trials.gain[0], trials.again[0]), (CLIPPED_AT, CLIPPED_AT))
        self.assertGreaterEqual(min(trials.gain.min(), trials.again.min()), CLIPPED_AT)
        self.assertEqual(np.isnan(trials.features).sum(), 1)
        self.assertTrue(np.isnan(trials.features[0, 5]))

    def test_several_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder, "other.parquet")
            pq.write_table(changed(self.table, "source", ["measured"] * self.table.num_rows), other)
            both = read(TRIALS, other)
            self.assertEqual(len(both.gain), 2 * self.table.num_rows)
            self.assertEqual(np.unique(both.source).tolist(), ["measured", "simulator"])
            self.assertNotEqual(both.sha256, read(TRIALS).sha256)
            pq.write_table(changed(self.table, "generator_version", [2] * self.table.num_rows), other)
            with self.assertRaisesRegex(BadData, "generator_version is 2, of the first file 1"):
                read(TRIALS, other)
        with self.assertRaisesRegex(BadData, "is in another file, too"):
            read(TRIALS, TRIALS)

    def test_sample(self) -> None:
        """Of more rows than are wanted, whole services are read, the same ones of every file."""
        some = read(TRIALS, most=self.table.num_rows // 2)
        self.assertTrue(0.2 < len(some.gain) / self.table.num_rows < 0.8)
        whole = read(TRIALS)
        for service in np.unique(some.service):
            self.assertEqual((some.service == service).sum(), (whole.service == service).sum())
        self.assertEqual(len(read(TRIALS, most=self.table.num_rows).gain), self.table.num_rows)
        for most in range(100, 200, 10):  # a small file may have no row in the sample
            self.assertGreater(len(read(TRIALS, EXPERIMENT, most=most).gain), 20)
        with self.assertRaisesRegex(BadData, "no rows|too few services"):
            read(TRIALS, most=1)

    def test_other_trials(self) -> None:
        """A model is judged on trials of another source, and not on its own."""
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder, "lab.parquet")
            pq.write_table(changed(self.table, "source", ["modelled (lab)"] * self.table.num_rows), other)
            trials = read(TRIALS)
            model = fit(trials, FEATURES, 0.9, QUICK)
            judged = elsewhere.judge(trials, model, elsewhere.read_others(trials, [other]))
            self.assertEqual((judged.source, judged.rows), ("modelled (lab)", self.table.num_rows))
            self.assertTrue(0.8 < judged.right <= 1 and judged.order > 0.5 and max(judged.outside.values()) <= 0.02)
            with self.assertRaisesRegex(BadData, "is in the training, too"):
                elsewhere.read_others(trials, [TRIALS])
            one = elsewhere.judge(trials, model, elsewhere.read_others(trials, [EXPERIMENT]))
            self.assertEqual((one.rows, one.services, one.clear), (1, 1, 1))
            self.assertIn("sign where a gain of measured is clear", one.verdict)

    def test_experiment(self) -> None:
        """The row that 'homenode experiment' writes goes with simulated ones, and not alone."""
        both = read(TRIALS, EXPERIMENT)
        self.assertEqual(len(both.gain), self.table.num_rows + 1)
        self.assertEqual((both.source[-1], both.generator), ("measured", 1))
        self.assertFalse(np.isnan(both.features[-1]).any())
        self.assertAlmostEqual(both.gain[-1], 1 / 6, delta=0.01)
        with self.assertRaisesRegex(BadData, "too few services: 1"):
            read(EXPERIMENT)


def walk(tree: dict[str, Any], row: np.ndarray) -> np.float32:
    """The leaf of a row: numbers 1 and 2 of export.py."""
    node = 0
    while tree["left_children"][node] != -1:
        x, split_at = row[tree["split_indices"][node]], np.float32(tree["split_conditions"][node])
        left = bool(tree["default_left"][node]) if np.isnan(x) else x < split_at
        node = tree["left_children" if left else "right_children"][node]
    return np.float32(tree["split_conditions"][node])


def by_hand(path: Path, base: float, rows: np.ndarray) -> list[float]:
    """What a saved booster predicts: numbers 3 and 4 of export.py."""
    learner = json.loads(xgb.Booster(model_file=path).save_raw("json"))["learner"]
    out = []
    for row in rows:
        total = np.float32(base)
        for tree in learner["gradient_booster"]["model"]["trees"]:
            total = np.float32(total + walk(tree, row))
        out.append(float(total))
    return out


class Golden(unittest.TestCase):
    def test_bits_by_hand(self) -> None:
        """The files are the same bytes each time, and enough to reproduce every bit."""
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            self.assertEqual((train(first), train(second)), (0, 0))
            for name in FILES:
                one, two = Path(first, name), Path(second, name)
                self.assertEqual(one.exists(), two.exists(), name)
                self.assertTrue(not one.exists() or one.read_bytes() == two.read_bytes(), name)
            self.by_hand(Path(first))

    def by_hand(self, folder: Path) -> None:
        manifest, want = (json.loads((folder / name).read_text()) for name in ("gain.json", "golden.json"))
        rows = np.array([[np.nan if x is None else x for x in row] for row in want["inputs"]], dtype=np.float32)
        self.assertEqual((len(rows), int(np.isnan(rows).sum())), (40, 2 * len(FEATURES)))
        self.assertEqual([f["name"] for f in manifest["features"]], list(FEATURES))
        at = by_hand(folder / manifest["booster"]["file"], manifest["booster"]["base_score"], rows)
        self.assertEqual(at, want["prediction"])
        scale, interval = manifest["scale"], manifest["interval"]
        widths = [1.0] * len(rows)
        if scale is not None:
            widths = [max(x, scale["floor"]) for x in by_hand(folder / scale["file"], scale["base_score"], rows)]
        self.assertEqual(widths, want["scale"])
        self.assertEqual([p + interval["low"] * w for p, w in zip(at, widths)], want["low"])
        self.assertEqual([p + interval["high"] * w for p, w in zip(at, widths)], want["high"])

    def test_scale_by_hand(self) -> None:
        """The scale booster too, whichever kind of interval was kept."""
        trials = read(TRIALS)
        gain = fit(trials, PAPER, 0.9, QUICK)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "scale.ubj")
            path.write_bytes(gain.scale_.save_raw("ubj"))
            rows = np.array(
                [[np.nan if x is None else x for x in row] for row in golden(trials, gain)["inputs"]], np.float32
            )
            base = json.loads(json.loads(gain.scale_.save_config())["learner"]["learner_model_param"]["base_score"])[0]
            self.assertEqual(by_hand(path, base, rows), predict(gain.scale_, rows).tolist())


class Card(unittest.TestCase):
    def test_card_and_scores(self) -> None:
        """--card puts the same targets on the page and in the manifest."""
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(train(folder, "--card", str(Path(folder, "gain.html"))), 0)
            scores = json.loads(Path(folder, "gain.json").read_text())["scores"]
            card = Path(folder, "gain.html").read_text()
        self.assertEqual(len(scores["targets"]), 4)
        self.assertEqual(card.count("UNMET"), sum(not t["met"] for t in scores["targets"]))
        self.assertEqual(set(scores["importance"]), set(FEATURES))
        for tag in ("<script", "<link", "<img", "src="):
            self.assertNotIn(tag, card)


class Fit(unittest.TestCase):
    def test_no_service_on_both_sides(self) -> None:
        """Each row is held out once, and never with a row of its service in the fit."""
        trials = read(TRIALS)
        masks = split(trials.service, 5, 3)
        self.assertTrue((np.sum(masks, axis=0) == 1).all())
        for out in masks:
            self.assertFalse(set(trials.service[out]) & set(trials.service[~out]))

    def test_conformal_covers(self) -> None:
        """Of exchangeable scores, as many as promised are inside, and each side misses half of the rest."""
        random, below, above = np.random.default_rng(1), [], []
        for _ in range(4000):
            scores = random.exponential(size=60)
            interval = conformal(scores[1:], 0.9, True)
            below.append(scores[0] < interval.low)
            above.append(scores[0] > interval.high)
        self.assertAlmostEqual(float(np.mean(below)), 0.05, delta=0.012)
        self.assertAlmostEqual(float(np.mean(above)), 0.05, delta=0.012)
        few = conformal(np.arange(5.0), 0.9, False)
        self.assertEqual((few.low, few.high), (-np.inf, np.inf))

    def test_learns(self) -> None:
        """Each model is nearer to the gain of services that it has not seen than their mean is."""
        trials = read(TRIALS)
        out = split(trials.service, 5, 1)[0]
        learn, check = trials.keep(~out), trials.keep(out)
        features, unseen = columns(learn, FEATURES), columns(check, FEATURES)
        booster = boost(features, learn.gain, QUICK[0], 60)
        nothing = np.abs(check.gain - learn.gain.mean()).mean()
        for got in (
            predict(booster, unseen),
            forest().fit(features, learn.gain).predict(unseen),
            line().fit(features, learn.gain).predict(unseen),
        ):
            self.assertLess(np.abs(check.gain - got).mean(), nothing)

    def test_unknown_feature(self) -> None:
        """Without any one feature the booster stays nearer than the mean, though no trial lacked it."""
        trials = read(TRIALS)
        features = columns(trials, FEATURES)
        booster = boost(features, trials.gain, QUICK[0], 60)
        nothing = np.abs(trials.gain - trials.gain.mean()).mean()
        for at, name in enumerate(FEATURES):
            unknown = features.copy()
            unknown[:, at] = np.nan
            self.assertLess(np.abs(trials.gain - predict(booster, unknown)).mean(), nothing, name)


class Scores(unittest.TestCase):
    def test_ceiling(self) -> None:
        """A prediction that knows the expected gain reaches the ceiling on normal noise."""
        random = np.random.default_rng(1)
        truth = 0.1 * random.standard_normal(20_000)
        first, second = (truth + 0.05 * random.standard_normal(len(truth)) for _ in range(2))
        many = replace(read(TRIALS), gain=first, again=second)
        self.assertAlmostEqual(reliability(many), 0.8, delta=0.01)
        got = score("p", "all", "XGBoost", [Test(many, truth)])
        self.assertAlmostEqual(got.share_r2, 1, delta=0.02)
        self.assertAlmostEqual(got.share_mae, 1, delta=0.02)
        self.assertAlmostEqual(retest_mae(many), 0.05 * np.sqrt(2 / np.pi), delta=0.001)


if __name__ == "__main__":
    unittest.main()
