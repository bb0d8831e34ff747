#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The model of gains against its targets, as ratios to what any prediction could reach: trials of
# the simulator, the whole evaluation, and the signs of the lab's trials by a model that learned
# from the simulator: mixes drawn in the same way, on the same machine. Half an hour.
#   scripts/bench-gain.sh    LAB=FILE    (trials of 'scripts/lab-trials.sh'; default: the repository's)
# Exit code 1 if a target is not met. build/bench/gain.html is the card.
set -eu
cd "$(dirname "$0")/.."
lab=${LAB:-python/tests/testdata/lab-trials.parquet}
out=build/bench
mkdir -p "$out"
build/homenode-lab sim trials --dataset "$out/gain.parquet"
scripts/model.sh gain "$out/gain.parquet" --card "$out/gain.html" > "$out/gain.log"
cat "$out/gain.log"
# Seeds that the lab does not have: a model must not know a mix that it is judged on.
build/homenode-lab sim trials --machine four --lab-mixes --fleets 80 --seed 100001 --dataset "$out/gain-four.parquet"
scripts/model.sh gain "$out/gain-four.parquet" --test "$lab" > "$out/gain-lab.log"
cat "$out/gain-lab.log"
cat "$out/gain-lab.log" >> "$out/gain.log"
grep -qE '^(ok|UNMET): ' "$out/gain.log" || { echo "bench-gain: no target was judged" >&2; exit 1; }
! grep -q '^UNMET' "$out/gain.log"
