#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a bench of internal/lab that is a test: TestBenchNAME, its results in
# build/bench/name.json, its log beside it.
#   scripts/bench-by-test.sh NAME    REPEATS=3  ONLY=part-of-a-name
set -eu
cd "$(dirname "$0")/.."
name=$(echo "$1" | tr '[:upper:]' '[:lower:]')
variable=HOMENODE_BENCH_$(echo "$1" | tr '[:lower:]' '[:upper:]')
out=$PWD/build/bench/$name
mkdir -p build/bench
export CI=true
env "$variable=$out.json" HOMENODE_BENCH_REPEATS="${REPEATS:-3}" HOMENODE_BENCH_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 120m -run "TestBench$1\$" -v ./internal/lab > "$out.log" 2>&1 || { cat "$out.log"; exit 1; }
grep -vE '^ *(=== |--- |ok|FAIL|PASS)' "$out.log"
