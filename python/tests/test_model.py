# SPDX-License-Identifier: Apache-2.0
"""scripts/model.sh test"""

from __future__ import annotations

import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from homenode_model.__main__ import main
from homenode_model.data import BadData, read
from homenode_model.evaluate import Choice, choose
from homenode_model.fit import Forest, against, choose_pair, conformal, errors, forest, ratios, split, targets

GOLDEN = Path(__file__).parents[2] / "internal/model/testdata"
ROWS = GOLDEN / "rows.parquet"
PROFILE = GOLDEN.parents[1] / "profiling/host/testdata/profile.parquet"


class Golden(unittest.TestCase):
    def test_trainer_still_writes_them(self) -> None:
        """The files that the Go test holds itself to are what these rows give."""
        with tempfile.TemporaryDirectory() as folder:
            model, golden = Path(folder, "model.json"), Path(folder, "golden.json")
            self.assertEqual(
                main(["train", str(ROWS), "--trees", "5", "--model", str(model), "--golden", str(golden)]), 0
            )
            for name, got in (("model.json", model), ("golden.json", golden)):
                self.assertEqual(json.loads(got.read_text()), json.loads((GOLDEN / name).read_text()), name)


class Folds(unittest.TestCase):
    def test_kind_left_out(self) -> None:
        """Each kind has a model that says that it was left out, and that saw all the others."""
        data = read(ROWS)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(main(["folds", str(ROWS), "--trees", "2", "--models", folder]), 0)
            for kind in np.unique(data.kind):
                model = json.loads(Path(folder, f"{kind}.json").read_text())
                self.assertEqual(model["left_out"], kind)
                self.assertEqual(model["workloads"], int((data.kind != kind).sum()))


class Data(unittest.TestCase):
    def test_refused(self) -> None:
        table = pq.read_table(ROWS)
        speeds = table.column("ops_per_s").to_pylist()
        at = table.schema.get_field_index("ops_per_s")

        def with_speeds(values: list[float]) -> pa.Table:
            return table.set_column(at, table.schema.field(at), pa.array(values, pa.float64()))

        cases = {
            "is no data set": table.replace_schema_metadata({}),
            "in order": table.slice(1),
            "not a number above 0": with_speeds([float("nan"), *speeds[1:]]),
            "nothing can be learned": with_speeds([1.0] * len(speeds)),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.parquet")
            for want, bad in cases.items():
                pq.write_table(bad, path)
                with self.assertRaisesRegex(BadData, want):
                    read(path)
            path.write_text("no parquet")
            with self.assertRaisesRegex(BadData, "read"):
                read(path)
            self.assertEqual(main(["train", str(path)]), 2)

    def test_reads_profiles(self) -> None:
        """What 'homenode profile' writes; the Go test of internal/profiling/host holds the file."""
        data = read(PROFILE)
        self.assertEqual(data.speed.tolist(), [[100.0, 110.0, 120.0, 130.0]])
        self.assertEqual(data.again.tolist(), [[101.0, 111.0, 121.0, 131.0]])
        self.assertEqual((data.about["source"], data.about["machine"]), ("measured", "fake, 8 nodes, 16 CPUs"))
        self.assertEqual([p.node_count for p in data.placements], [2, 4, 4, 4])
        ipc = data.counters[0, :, 6]
        self.assertTrue(np.isnan(ipc[0]) and (ipc[1:] == 0.5).all())

    def test_several_files(self) -> None:
        table = pq.read_table(PROFILE)
        names = table.schema.get_field_index("workload")
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder, "other.parquet")
            pq.write_table(table.set_column(names, "workload", pa.array(["web"] * 4)), other)
            both = read(PROFILE, other)
            self.assertEqual(both.workload.tolist(), ["db", "web"])
            self.assertNotEqual(both.sha256, read(PROFILE).sha256)
        for want, more in (("is in another file", PROFILE), ("machine is", ROWS)):
            with self.assertRaisesRegex(BadData, want):
                read(PROFILE, more)


class Fit(unittest.TestCase):
    def test_pair_beats_no_model(self) -> None:
        data = read(ROWS)
        pair = choose_pair(data)
        out = split(data.application, 0.25, 5)
        learn, check = data.keep(~out), data.keep(out)
        self.assertFalse(set(learn.application) & set(check.application))
        model = forest(20).fit(ratios(learn, pair), targets(learn, pair[0]))
        mean = np.tile(targets(learn, pair[0]).mean(axis=0), (len(check.speed), 1))
        self.assertLess(
            errors(check, model.predict(ratios(check, pair)), pair[0]).mean(), errors(check, mean, pair[0]).mean()
        )

    def test_conformal_covers(self) -> None:
        """Of exchangeable workloads, as many as promised are inside the interval."""
        data, random = read(ROWS), np.random.default_rng(1)
        data = data.keep(np.arange(len(data.speed)) < 40)
        inside = []
        for _ in range(400):
            truth = 1 + 0.1 * random.standard_normal((40, 2))
            some = replace(data, speed=np.ones((40, 2)), again=truth)
            width = conformal(against(some.keep(np.arange(40) < 39), np.ones((39, 2)), 0), 0.9)
            inside.append(np.abs(truth[39] - 1) <= width)
        self.assertAlmostEqual(float(np.mean(inside)), 0.9, delta=0.03)
        few = data.keep(np.arange(len(data.speed)) < 5)
        self.assertTrue(np.isinf(conformal(against(few, np.ones_like(few.speed), 0), 0.9)).all())

    def test_choice(self) -> None:
        model = Forest((0, 1), forest(1), np.array([0.0, 0.1, 0.0]), 0.9, np.ones((1, 3)))
        nodes = np.array([1.0, 2.0, 4.0])
        for goal, want in (
            (0.9, Choice(0, False)),
            (1.05, Choice(2, True)),
            (1.3, Choice(2, False)),
            (2.0, Choice(-1, False)),
        ):
            self.assertEqual(choose(model, np.array([1.0, 1.1, 1.5]), nodes, goal), want, goal)


if __name__ == "__main__":
    unittest.main()
