#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Classes (sheep, rabbit, devil) of real programs, busybox's, in the lab: slowdowns beside
# the references and with remote memory, as animal.Slowdowns defines them, against what
# is inferred from windows: build/bench/classes.json. All is modelled but the programs.
# An hour and more at 3 repeats; the host should have nothing else to do.
#   REPEATS=3  ONLY=part-of-a-name
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
export CI=true
HOMENODE_BENCH_CLASSES="$PWD/build/bench/classes.json" HOMENODE_BENCH_REPEATS="${REPEATS:-3}" HOMENODE_BENCH_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 120m -run 'TestBenchClasses$' -v ./internal/lab > build/bench/classes.log 2>&1 || { cat build/bench/classes.log; exit 1; }
grep -vE '^ *(=== |--- |ok|FAIL|PASS)' build/bench/classes.log
