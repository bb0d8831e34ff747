#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures in the lab what the simulated machine is compared with. Adds missing scenarios to
# internal/sim/parity/testdata (lab.json, noise.json) one by one, so that it can be
# interrupted and run again. FRESH=1 starts again. A repeat of all took 12 minutes on a busy
# host. A busy host makes it longer, not different.
#   REPEATS=3  ONLY=part-of-a-name
set -u
cd "$(dirname "$0")/.." || exit
data=$PWD/internal/sim/parity/testdata
mkdir -p "$data" build/bench
[ -z "${FRESH:-}" ] || rm -f "$data/lab.json" "$data/noise.json"
export CI=true
HOMENODE_SIM_PARITY="$data/lab.json" HOMENODE_BENCH_REPEATS="${REPEATS:-3}" HOMENODE_SIM_PARITY_ONLY="${ONLY:-}" \
	go test -count=1 -timeout 120m -run 'TestBenchSimParity$' -v ./internal/lab > build/bench/sim-parity.log 2>&1
code=$?
if [ ! -e "$data/noise.json" ] && [ -z "${ONLY:-}" ]; then
	HOMENODE_SIM_NOISE="$data/noise.json" go test -count=1 -timeout 30m -run 'TestBenchSimNoise$' -v ./internal/lab >> build/bench/sim-parity.log 2>&1 || code=1
fi
grep -vE '^ *(=== |--- |ok|FAIL|PASS)' build/bench/sim-parity.log
exit $code
