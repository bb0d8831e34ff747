# SPDX-License-Identifier: Apache-2.0
"""Reads data sets of 'homenode-lab sim placements' and 'homenode profile'."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

Floats = npt.NDArray[np.float64]
Texts = npt.NDArray[np.str_]

SCHEMA = "1"
# The features of a window, as internal/sim/placements names them.
COUNTERS = (
    "mbw_bytes_per_s",
    "msr_ratio",
    "npmr_ratio",
    "rmbr_ratio",
    "cpu_cpus",
    "rss_bytes",
    "ipc_instructions_per_cycle",
    "llc_misses_per_kilo_instruction",
)


class BadData(Exception):
    """One sentence for a person: what is wrong with which file."""


@dataclass(frozen=True)
class Placement:
    nodes: str
    cpus: str
    scores: str
    node_count: int


@dataclass(frozen=True)
class DataSet:
    """Workloads by row, placements by column."""

    speed: Floats  # operations/s, measured
    again: Floats  # measured a second time
    counters: Floats  # workload x placement x COUNTERS; NaN: unknown
    application: Texts
    kind: Texts
    workload: Texts
    placements: tuple[Placement, ...]
    about: dict[str, str]  # "machine", "vcpus", "source", "commit", ...
    sha256: str

    def keep(self, rows: npt.NDArray[np.bool_]) -> DataSet:
        return DataSet(
            self.speed[rows],
            self.again[rows],
            self.counters[rows],
            self.application[rows],
            self.kind[rows],
            self.workload[rows],
            self.placements,
            self.about,
            self.sha256,
        )


def read(first: Path, *more: Path) -> DataSet:
    """Reads one or more files of the same machine as one. Raises BadData, with the reason."""
    data = read_file(first)
    for path in more:
        data = join(data, read_file(path), path)
    if (data.speed == data.speed[:, [0]]).all():
        raise BadData(f"read {first}: every workload has the same speed in all placements: nothing can be learned")
    return data


def join(data: DataSet, other: DataSet, path: Path) -> DataSet:
    """Both are of one machine, number of vCPUs, list of placements and source."""
    for key in ("machine", "vcpus", "source"):
        if data.about.get(key) != other.about.get(key):
            raise BadData(f"read {path}: {key} is {other.about.get(key)}, of the first file {data.about.get(key)}")
    if data.placements != other.placements:
        raise BadData(f"read {path}: its placements are not those of the first file")
    twice = sorted(set(data.workload) & set(other.workload))
    if twice:
        raise BadData(f"read {path}: workload {twice[0]} is in another file, too: name it with --application")
    return DataSet(
        np.concatenate([data.speed, other.speed]),
        np.concatenate([data.again, other.again]),
        np.concatenate([data.counters, other.counters]),
        np.concatenate([data.application, other.application]),
        np.concatenate([data.kind, other.kind]),
        np.concatenate([data.workload, other.workload]),
        data.placements,
        data.about,
        hashlib.sha256((data.sha256 + other.sha256).encode()).hexdigest(),
    )


def read_file(path: Path) -> DataSet:
    """One file."""
    try:
        table = pq.read_table(path)
        raw = table.schema.metadata or {}
    except (OSError, ValueError) as err:
        raise BadData(f"read {path}: {err}") from err
    about = {k.decode().removeprefix("homenode."): v.decode() for k, v in raw.items() if k.startswith(b"homenode.")}
    if about.get("schema") != SCHEMA or "vcpus" not in about:
        raise BadData(
            f"read {path}: schema {about.get('schema')} is no data set of placements of schema {SCHEMA}: "
            "make one with 'homenode-lab sim placements --dataset'"
        )
    columns = table.to_pydict()
    count = int(about["placements"])
    rows = len(columns["placement"])
    if rows == 0 or rows % count or columns["placement"] != list(range(count)) * (rows // count):
        raise BadData(f"read {path}: its {rows} rows are not {count} placements of each workload, in order")

    def by_placement(name: str) -> Floats:
        values = [np.nan if v is None else v for v in columns[name]]
        return np.array(values, dtype=np.float64).reshape(-1, count)

    def of_workload(name: str) -> Texts:
        return np.array(columns[name][::count])

    speed, again = by_placement("ops_per_s"), by_placement("ops_per_s_again")
    for name, values in (("ops_per_s", speed), ("ops_per_s_again", again)):
        bad = ~(np.isfinite(values) & (values > 0))
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            raise BadData(f"read {path}: {name} of {of_workload('workload')[row]} is not a number above 0")
    placements = tuple(
        Placement(columns["nodes"][i], columns["cpus"][i], columns["scores"][i], int(columns["node_count"][i]))
        for i in range(count)
    )
    counters = np.stack([by_placement(name) for name in COUNTERS], axis=2)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return DataSet(
        speed,
        again,
        counters,
        of_workload("application"),
        of_workload("kind"),
        of_workload("workload"),
        placements,
        about,
        digest,
    )
