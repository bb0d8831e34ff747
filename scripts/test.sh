#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CI runs: everything but throughput and latency. The lab comes last: its guests need
# both cores for themselves.
set -eu
cd "$(dirname "$0")/.."
export CI="${CI:-}"
start=$(date +%s)
stage() { echo "test: $1 done after $(($(date +%s) - start)) s"; }
# The lab's C mostly waits for its threads: it is tested beside what comes next.
c_log=$(mktemp)
(
	make -s -C lab/plugin test OUT="$PWD/build/lab" &&
		sh lab/workload/test.sh build/lab/homenode-load
) > "$c_log" 2>&1 &
c_tests=$!
trap 'kill $c_tests 2>/dev/null || true; rm -f "$c_log"' EXIT
# The linters are not part of the programs. Without a registry the script says so and runs the
# checks that need none. 'make check' fails then.
if scripts/tools.sh; then
	scripts/lint.sh
else
	echo "test: the linters could not be installed: NOT linted, and the documents' site is not built" >&2
	bad=$(gofmt -l cmd internal lab/shapes)
	[ -z "$bad" ] || { echo "test: run gofmt -w on: $bad" >&2; exit 1; }
	go vet ./...
	python3 scripts/check-links.py
fi
stage "linters and documents"
# shellcheck disable=SC2046
go test -timeout 80m $(go list ./... | grep -v '/internal/lab$')
stage "packages without the lab"
wait $c_tests || { cat "$c_log"; echo "test: the lab's C: see above" >&2; exit 1; }
tail -n 1 "$c_log"
stage "the lab's C"
# A guest waits for its own timers now and then: a third one uses what two leave.
go test -timeout 80m -parallel 3 ./internal/lab
stage "the lab"
FUZZTIME="${FUZZTIME:-2s}" scripts/fuzz.sh
stage fuzzing
