# SPDX-License-Identifier: Apache-2.0
"""homenode-model train rows.parquet --model model.json --card model.html
homenode-model folds rows.parquet --models folder
homenode-model gain trials.parquet --model gain.ubj --card gain.html"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import export
from .card import page
from .categories import categorise
from .data import BadData, DataSet, read
from .evaluate import NESTED, evaluate
from .fit import TREES, Forest, choose_pair, choose_third, fit, folds
from .gain import command


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="homenode-model", description="Fits homenode's model of placements.")
    commands = top.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="fit, evaluate, and write a model and its card")
    train.add_argument("--model", type=Path, help="file for the model, as homenode reads it")
    train.add_argument("--card", type=Path, help="file for one page about the model; evaluates it")
    train.add_argument("--golden", type=Path, help="file for rows that homenode must reproduce")
    train.add_argument("--target", type=float, help="error that is to be reached, for the card, such as 0.044")
    folds = commands.add_parser("folds", help="fit a model without each kind of workload, to judge it on that kind")
    folds.add_argument("--models", type=Path, required=True, help="folder for KIND.json, the model without that kind")
    for one in (train, folds):
        one.add_argument(
            "rows",
            type=Path,
            nargs="+",
            help="data sets of 'homenode-lab sim placements --dataset' or 'homenode profile --rows'",
        )
        one.add_argument("--trees", type=int, default=TREES, help=f"trees of a forest (default {TREES})")
    trials = command.add(commands)
    for one in (train, folds, trials):
        one.add_argument("--confidence", type=float, default=0.9, help="of the intervals (default 0.9)")
    return top


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    if not 0 < args.confidence < 1 or not 1 <= getattr(args, "trees", TREES) <= 1000:
        print("homenode-model: --confidence is between 0 and 1, --trees 1 to 1000", file=sys.stderr)
        return 2
    for file in (getattr(args, name, None) for name in ("model", "card", "golden")):
        if file and not file.parent.is_dir():
            print(f"homenode-model: {file}: there is no folder {file.parent}: make it first", file=sys.stderr)
            return 2
    try:
        if args.command == "gain":
            return command.run(args)
        data = read(*args.rows)
    except BadData as err:
        print(f"homenode-model: {err}", file=sys.stderr)
        return 2
    if args.command == "folds":
        return write_folds(args, data)
    return write_model(args, data)


def fit_both(args: argparse.Namespace, data: DataSet) -> list[Forest]:
    """The forest of two probes, and the one with a third. Both are chosen for this data."""
    pair = choose_pair(data)
    return [fit(data, probes, args.confidence, args.trees) for probes in (pair, choose_third(data, pair))]


def write_model(args: argparse.Namespace, data: DataSet) -> int:
    forests = fit_both(args, data)
    pair, third = forests[0].probes, forests[1].probes
    print(
        f"{len(data.speed)} workloads, {len(data.placements)} placements, {data.about['machine']}; probes {pair}, third {third[2]}"
    )
    error = None
    if args.card:
        result = evaluate(data, pair, third, args.confidence, args.trees)
        error = next(a.by_kind for a in result.arms if a.name == NESTED)
        for arm in result.arms:
            print(f"{arm.name}: {arm.by_kind:.4f} a kind left out, {arm.by_application:.4f} an application")
        print(f"no model {result.no_model:.4f}, two runs {result.retest:.4f}, {result.decisions}")
        args.card.write_text(page(data, forests, result, categorise(data, pair[0]), args.target), encoding="utf-8")
    if args.model:
        export.write(args.model, export.model(data, forests, error))
    if args.golden:
        export.write(args.golden, export.golden(data, forests, 24))
    return 0


def write_folds(args: argparse.Namespace, data: DataSet) -> int:
    args.models.mkdir(parents=True, exist_ok=True)
    for out in folds(data.kind):
        kind, seen = str(data.kind[out][0]), data.keep(~out)
        forests = fit_both(args, seen)
        export.write(args.models / f"{kind}.json", export.model(seen, forests, None, kind))
        print(f"without {kind}: {len(seen.speed)} workloads, probes {forests[1].probes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
