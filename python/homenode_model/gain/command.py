# SPDX-License-Identifier: Apache-2.0
"""homenode-model gain trials.parquet --model gain.ubj --card gain.html"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import elsewhere, spark
from .card import page
from .data import FEATURES, MOST_ROWS, Trials, read
from .evaluate import FULL, SMALL, Size, evaluate, lines, summary
from .export import golden, write, write_json
from .fit import Gain, describe, fit


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    gain = commands.add_parser("gain", help="fit, evaluate, and write the model of what a binding gains")
    gain.add_argument(
        "rows", type=Path, nargs="+", help="data sets of 'homenode-lab sim trials' and 'homenode experiment'"
    )
    gain.add_argument("--model", type=Path, help="file for the booster, NAME.ubj; the manifest is NAME.json beside it")
    gain.add_argument("--card", type=Path, help="file for one page about the model; evaluates it, which takes minutes")
    gain.add_argument(
        "--test", type=Path, nargs="+", help="data sets of other trials to judge the model on, such as the lab's"
    )
    gain.add_argument(
        "--spark", metavar="MASTER", help="fit the booster by Spark on all rows, such as local[2]; the rest on a sample"
    )
    gain.add_argument("--golden", type=Path, help="file for rows that homenode must reproduce")
    gain.add_argument("--quick", action="store_true", help="smaller search and fewer repeats, to try the program")
    return gain


def run(args: argparse.Namespace) -> int:
    """Raises BadData before anything is written."""
    trials, size = read(*args.rows, most=MOST_ROWS if args.spark else None), SMALL if args.quick else FULL
    others = elsewhere.read_others(trials, args.test) if args.test else None
    model = fit(trials, FEATURES, args.confidence, size.grid)
    print(f"{len(trials.gain)} trials of {len(set(trials.service))} services; {describe(model)}")
    if args.spark:
        model = replace(model, booster_=spark.boost(args.rows, model.found, args.spark))
    judged = elsewhere.judge(trials, model, others) if others else None
    if judged:
        print(*elsewhere.lines(judged), judged.verdict, sep="\n")
    scores = write_card(args.card, trials, model, size, judged) if args.card else None
    if judged:
        scores = {**(scores or {}), "elsewhere": elsewhere.summary(judged)}
    if args.model:
        write(args.model, trials, model, scores)
    if args.golden:
        write_json(args.golden, golden(trials, model))
    return 0


def write_card(
    path: Path, trials: Trials, model: Gain, size: Size, judged: elsewhere.Elsewhere | None
) -> dict[str, Any]:
    """Evaluates the model and returns its scores, for the manifest."""
    result = evaluate(trials, model, size)
    print(*lines(result), sep="\n")
    path.write_text(page(trials, model, result, judged), encoding="utf-8")
    return summary(result)
