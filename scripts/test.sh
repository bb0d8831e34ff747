#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CI runs: everything but throughput and latency. The lab comes last: its guests need
# both cores for themselves.
set -eu
cd "$(dirname "$0")/.."
export CI="${CI:-}"
start=$(date +%s)
stage() { echo "test: $1 done after $(($(date +%s) - start)) s"; }
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
make -s -C lab/plugin test OUT="$PWD/build/lab"
sh lab/workload/test.sh build/lab/homenode-load
stage "the lab's C"
# shellcheck disable=SC2046
go test -timeout 80m $(go list ./... | grep -v '/internal/lab$')
stage "packages without the lab"
go test -timeout 80m ./internal/lab
stage "the lab"
FUZZTIME="${FUZZTIME:-2s}" scripts/fuzz.sh
stage fuzzing
