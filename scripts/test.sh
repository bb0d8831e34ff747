#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CI runs: everything but throughput and latency. The lab after all else: its guests
# want both cores for themselves.
set -eu
cd "$(dirname "$0")/.."
export CI="${CI:-}"
scripts/lint.sh
make -s -C lab/plugin test OUT="$PWD/build/lab"
sh lab/workload/test.sh build/lab/homenode-load
go test -timeout 80m $(go list ./... | grep -v '/internal/lab$')
go test -timeout 80m ./internal/lab
FUZZTIME="${FUZZTIME:-3s}" scripts/fuzz.sh
