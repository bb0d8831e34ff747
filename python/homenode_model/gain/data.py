# SPDX-License-Identifier: Apache-2.0
"""Reads data sets of 'homenode-lab sim trials' and of 'homenode experiment'."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..data import BadData, Floats, Texts

Floats32 = npt.NDArray[np.float32]

SCHEMA = 2
KIND = "homenode-trials"
# MAO's four counters: memory bandwidth, and the ratios of internal/window.
PAPER = ("mbw_bytes_per_s", "msr_ratio", "npmr_ratio", "rmbr_ratio")
# As internal/sim/fleet names them (TrialRow). The paper's four come first: PAPER is a prefix.
FEATURES = (
    *PAPER,
    "cpu_cpus",
    "ipc_instructions_per_cycle",
    "llc_misses_per_kilo_instruction",
    "cpu_of_node_ratio",
    "server_busy_ratio",
    "idlest_node_busy_ratio",
)
LABEL, AGAIN = "gain_latency_ratio", "gain_latency_again_ratio"
NAMES = ("service_hash", "replica_hash", "kind", "source", "machine")
NUMBERS = ("seed", "generator_version")
# A replica whose latency grows by half is hurt: how much more than that does not matter, and an
# overloaded one's latency grows 50 times. Squared errors would be those of a few such rows.
# Lower: the score is that of overloaded replicas. Higher: the model cannot tell bad from very bad.
CLIPPED_AT = -0.5
# Rows of a service are held out together, in nested folds of 5 and 3: each of them needs some.
LEAST_SERVICES = 10
# With Spark: rows for parameters and intervals, about as many. More make them no better.
MOST_ROWS = 50_000


@dataclass(frozen=True)
class Trials:
    """Replicas by row. gain_latency_true_ratio is not here: nothing measures it on a server."""

    features: Floats32  # replica x FEATURES; NaN: unknown
    gain: Floats  # 1 - bound / unbound latency, clipped
    again: Floats  # the same of a second trial
    service: Texts
    replica: Texts
    kind: Texts
    source: Texts
    machine: Texts
    seed: npt.NDArray[np.uint64]
    generator: int  # version; 0: none of it was generated
    command: str
    sha256: str

    def keep(self, rows: npt.NDArray[np.bool_]) -> Trials:
        return Trials(
            self.features[rows],
            self.gain[rows],
            self.again[rows],
            self.service[rows],
            self.replica[rows],
            self.kind[rows],
            self.source[rows],
            self.machine[rows],
            self.seed[rows],
            self.generator,
            self.command,
            self.sha256,
        )


def read_some(first: Path, *more: Path, share: float = 1.0) -> Trials:
    """Reads one or more files as one, or a share of their services. Raises BadData, with the reason."""
    trials = read_file(first, share)
    for path in more:
        trials = join(trials, read_file(path, share), path)
    return trials


def read(first: Path, *more: Path, most: int | None = None) -> Trials:
    """Reads what a model learns from. Where the files have more rows than most, some services are read,
    with all of their rows. Raises BadData, with the reason."""
    share = 1.0 if most is None else min(1.0, most / max(1, sum(rows_of(path) for path in (first, *more))))
    trials = read_some(first, *more, share=share)
    services = len(np.unique(trials.service))
    if services < LEAST_SERVICES:
        raise BadData(
            f"read {first}: too few services: {services}; services are held out, which needs {LEAST_SERVICES}"
        )
    if len(np.unique(trials.gain)) == 1:
        raise BadData(f"read {first}: every trial has the same gain: nothing can be learned")
    for name, column in zip(FEATURES, trials.features.T):
        if np.isnan(column).all():
            raise BadData(f"read {first}: {name} is unknown in every row: nothing can be learned from it")
    return trials


def join(trials: Trials, other: Trials, path: Path) -> Trials:
    """Machines and sources may differ: the manifest lists them. A replica comes once.

    What was not generated (version 0) goes with any generator.
    """
    if trials.generator and other.generator and trials.generator != other.generator:
        raise BadData(f"read {path}: generator_version is {other.generator}, of the first file {trials.generator}")
    twice = sorted(keys(trials) & keys(other))
    if twice:
        raise BadData(f"read {path}: replica {twice[0][-1]} is in another file, too")
    return Trials(
        np.concatenate([trials.features, other.features]),
        np.concatenate([trials.gain, other.gain]),
        np.concatenate([trials.again, other.again]),
        np.concatenate([trials.service, other.service]),
        np.concatenate([trials.replica, other.replica]),
        np.concatenate([trials.kind, other.kind]),
        np.concatenate([trials.source, other.source]),
        np.concatenate([trials.machine, other.machine]),
        np.concatenate([trials.seed, other.seed]),
        max(trials.generator, other.generator),
        f"{trials.command}; {other.command}",
        hashlib.sha256((trials.sha256 + other.sha256).encode()).hexdigest(),
    )


def keys(trials: Trials) -> set[tuple[str, str, str]]:
    """What names a row: a replica's hash has its seed in it, but not its machine."""
    return {(str(m), str(s), str(r)) for m, s, r in zip(trials.machine, trials.source, trials.replica)}


def rows_of(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError) as err:
        raise BadData(f"read {path}: {err}") from err


def chosen(service: str, share: float) -> bool:
    """The same services in every file."""
    return int(hashlib.sha256(service.encode()).hexdigest()[:8], 16) < share * 2**32


def read_table(path: Path, share: float) -> pa.Table:
    """All rows, or those of a share of the services; a part of the file at a time."""
    if share >= 1:
        return pq.read_table(path)
    file = pq.ParquetFile(path)
    parts = [file.schema_arrow.empty_table()]
    for batch in file.iter_batches():
        keep = [s is None or chosen(str(s), share) for s in batch.column("service_hash").to_pylist()]
        parts.append(pa.Table.from_batches([batch]).filter(pa.array(keep, pa.bool_())))
    return pa.concat_tables(parts).replace_schema_metadata(file.schema_arrow.metadata)


def read_file(path: Path, share: float = 1.0) -> Trials:
    """One file."""
    try:
        table = read_table(path, share)
        raw = table.schema.metadata or {}
    except (OSError, ValueError, KeyError) as err:
        raise BadData(f"read {path}: {err}") from err
    about = {k.decode().removeprefix("homenode."): v.decode() for k, v in raw.items() if k.startswith(b"homenode.")}
    check_kind(path, about)
    check_columns(path, table)
    if table.num_rows == 0 and share >= 1:
        raise BadData(f"read {path}: it has no rows")
    generators = sorted(set(table.column("generator_version").to_pylist())) or [0]
    if len(generators) > 1:
        raise BadData(f"read {path}: it has rows of generator_version {generators[0]} and {generators[1]}")
    names = {name: texts(path, table, name) for name in NAMES}
    return Trials(
        np.column_stack([feature(path, table, name) for name in FEATURES]),
        np.maximum(gains(path, table, LABEL), CLIPPED_AT),
        np.maximum(gains(path, table, AGAIN), CLIPPED_AT),
        names["service_hash"],
        names["replica_hash"],
        names["kind"],
        names["source"],
        names["machine"],
        np.array(table.column("seed").to_pylist(), dtype=np.uint64),
        int(generators[0]),
        about.get("command", "unknown"),
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def check_kind(path: Path, about: dict[str, str]) -> None:
    if about.get("kind") != KIND:
        raise BadData(
            f"read {path}: its kind is {about.get('kind', 'not given')}, not {KIND}: "
            "make one with 'homenode-lab sim trials --dataset' or 'homenode experiment --rows'"
        )
    major = about.get("schema", "").partition(".")[0]
    if not major.isdecimal():
        raise BadData(f"read {path}: its schema is {major or 'not given'}, not a number")
    if int(major) > SCHEMA:
        raise BadData(f"read {path}: schema {major} is newer than {SCHEMA}, the newest that this program reads")


def check_columns(path: Path, table: pa.Table) -> None:
    missing = [c for c in (*FEATURES, LABEL, AGAIN, *NAMES, *NUMBERS) if c not in table.column_names]
    if missing:
        raise BadData(f"read {path}: it has no column {missing[0]}")


def texts(path: Path, table: pa.Table, name: str) -> Texts:
    values = table.column(name).to_pylist()
    for row, value in enumerate(values):
        if not value:
            raise BadData(f"read {path}: {name} of row {row} is not given")
    return np.array(values, dtype=str)


def numbers(table: pa.Table, name: str) -> Floats:
    return np.array([np.nan if v is None else v for v in table.column(name).to_pylist()], dtype=np.float64)


def feature(path: Path, table: pa.Table, name: str) -> Floats32:
    """As float32, which is what XGBoost compares. One that float32 cannot hold is infinite."""
    with np.errstate(over="ignore"):
        values = numbers(table, name).astype(np.float32)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise BadData(f"read {path}: {name} of row {row} is infinite")
    return values


def gains(path: Path, table: pa.Table, name: str) -> Floats:
    values = numbers(table, name)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise BadData(f"read {path}: {name} of row {bad[0]} is not a finite number")
    return values
