#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The accuracy of the estimates of the local access ratio, against the lab's exact counts.
# Adds missing scenarios to build/bench/estimate.json one by one, so that it can be
# interrupted and run again, and prints the tables of
# docs/decisions/0029-estimates.md. FRESH=1 starts again. A busy host makes it longer, not
# different.
#   ONLY=part-of-a-name, e.g. two/held
set -u
cd "$(dirname "$0")/.." || exit
record=$PWD/build/bench/estimate.json
mkdir -p build/bench
[ -z "${FRESH:-}" ] || rm -f "$record"
make -s build/homenode || exit 1
export CI=true
HOMENODE_ESTIMATE="$record" HOMENODE_ESTIMATE_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 90m -run 'TestBenchEstimate$' -v ./internal/lab > build/bench/estimate.log 2>&1
code=$?
grep -vE '^ *(=== |--- |ok|FAIL|PASS)' build/bench/estimate.log
exit $code
