# SPDX-License-Identifier: Apache-2.0
"""Fits the booster with Spark, from the same Parquet files: for more rows than one machine holds.

Parameters and intervals are those of a sample that one machine reads (data.read, MOST_ROWS). Each
row comes three times, as in fit.masked: whole, with one feature unknown, which its replica's name
chooses, and without what is of the host.

Spark is not among the package's dependencies: pip install pyspark pandas, and a Java runtime.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import xgboost as xgb

from ..data import BadData
from .data import CLIPPED_AT, FEATURES, LABEL
from .fit import FIXED, OF_HOST, UNKNOWN_WEIGHT, Found

# Tasks that fit one booster together, each on its part of the rows.
WORKERS = 2
# No other master was tried, and the driver listens on this host only.
MASTERS = re.compile(r"local\[(\*|[2-9]|[1-9][0-9]+)\]")


def boost(paths: list[Path], found: Found, master: str) -> xgb.Booster:
    """Raises BadData where Spark is not there, or cannot start, and for rows without a gain."""
    if not MASTERS.fullmatch(master):
        raise BadData(f"--spark {master}: want local[N], N at least {WORKERS}, or local[*]: no cluster was tried")
    try:
        from pyspark.sql import SparkSession
        from xgboost.spark import SparkXGBRegressor
    except ImportError as err:
        raise BadData(f"--spark {master}: {err}: pip install pyspark pandas, and a Java runtime") from err
    try:
        session = (
            SparkSession.builder.master(master)
            .appName("homenode-model gain")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
    except Exception as err:  # Spark's own errors have no common type
        raise BadData(f"--spark {master}: Spark does not start: {str(err).splitlines()[0]}") from err
    try:
        chosen = {k: v for k, v in {**FIXED, **found.chosen}.items() if k not in ("nthread", "seed", "eta")}
        regressor = SparkXGBRegressor(
            features_col=list(FEATURES),
            label_col="label",
            weight_col="weight",
            num_workers=WORKERS,
            n_estimators=found.trees,
            learning_rate=FIXED["eta"],
            random_state=FIXED["seed"],
            **chosen,
        )
        read = session.read.parquet(*(str(path) for path in paths))
        if bad := read.filter(f"{LABEL} IS NULL OR isnan({LABEL})").count():
            raise BadData(f"--spark {master}: {LABEL} of {bad} rows is not a finite number")
        booster: xgb.Booster = regressor.fit(rows(read)).get_booster()
    finally:
        session.stop()
    booster.feature_names = None  # as those that are fitted without Spark
    return booster


def rows(read: Any) -> Any:
    """Features and label, each row three times. Unknown is NaN."""
    from pyspark.sql import functions as f

    unknown = f.lit(float("nan"))
    whole = read.select(
        "replica_hash",
        f.greatest(f.col(LABEL), f.lit(CLIPPED_AT)).alias("label"),
        *(f.coalesce(f.col(name), unknown).cast("float").alias(name) for name in FEATURES),
    )
    number = f.pmod(f.xxhash64("replica_hash"), f.lit(len(FEATURES)))
    one = [f.when(number == at, unknown).otherwise(f.col(name)).alias(name) for at, name in enumerate(FEATURES)]
    host = [(unknown if name in OF_HOST else f.col(name)).alias(name) for name in FEATURES]
    less = whole.select("replica_hash", "label", *one).union(whole.select("replica_hash", "label", *host))
    return whole.withColumn("weight", f.lit(1.0)).union(less.withColumn("weight", f.lit(UNKNOWN_WEIGHT)))
