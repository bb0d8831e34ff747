#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rao's mixes in the lab, as far as it holds them: the default, homenode brm, brm --hold
# and by hand, in turns, by the model's clock: build/bench/brm.json. An hour at 3
# repeats; the host should have nothing else to do.
#   REPEATS=3  ONLY=part-of-a-name
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
export CI=true
HOMENODE_BENCH_BRM="$PWD/build/bench/brm.json" HOMENODE_BENCH_REPEATS="${REPEATS:-3}" HOMENODE_BENCH_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 120m -run 'TestBenchBRM$' -v ./internal/lab > build/bench/brm.log 2>&1 || { cat build/bench/brm.log; exit 1; }
grep -vE '^ *(=== |--- |ok|FAIL|PASS)' build/bench/brm.log
