#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CI runs: everything but throughput and latency. Packages one after the
# other: the lab's guest wants both cores for itself.
set -eu
cd "$(dirname "$0")/.."
export CI="${CI:-}"
bad=$(gofmt -l cmd internal lab/shapes)
[ -z "$bad" ] || { echo "test: run gofmt -w on: $bad" >&2; exit 1; }
go vet ./...
make -s -C lab/plugin test OUT="$PWD/build/lab"
sh lab/workload/test.sh build/lab/homenode-load
go test -p 1 -timeout 80m ./...
FUZZTIME="${FUZZTIME:-3s}" scripts/fuzz.sh
