#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The loop from no knowledge: trials in the simulator, a model of gains from them, and services of
# simulated hosts that it has not seen, rolled out and proven. Result: build/loop/loop.html.
set -eu
cd "$(dirname "$0")/.."
out=build/loop
mkdir -p "$out"
say() { echo "demo-loop: $*" >&2; }
say "1 of 3: trials: each replica of 480 simulated servers bound alone, twice"
build/homenode-lab sim trials --dataset "$out/trials.parquet"
say "2 of 3: a model of gains from them"
scripts/model.sh gain "$out/trials.parquet" --model "$out/gain.ubj" --card "$out/gain.html" --quick
say "3 of 3: services that it has not seen"
go run ./cmd/homenode-loop --model "$out/gain.json" --out "$out"
say "the page is $out/loop.html, the model's card $out/gain.html"
