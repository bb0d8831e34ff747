#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cost and the accuracy of the lab: CPU time of QEMU with coherence against
# without, what `homenode bench` recovers of every shape, and how long the whole
# profile of shape four takes. Results in build/bench; exit code 1 if a target is
# not met. The host should have nothing else to do.
set -u
cd "$(dirname "$0")/.." || exit
out=$PWD/build/bench
mkdir -p "$out"
bad=0
export CI=true
echo "bench-lab: the lab with coherence against without (at most 1.5 times)"
HOMENODE_BENCH="$out/lab-cost.json" go test -count=1 -timeout 30m -run TestBenchCoherence -v ./internal/lab > "$out/lab-cost.log" 2>&1 || bad=1
grep ' × ' "$out/lab-cost.log" || tail -n 20 "$out/lab-cost.log"
echo "bench-lab: what homenode bench recovers of each shape"
HOMENODE_PARITY=all go test -count=1 -timeout 60m -run TestLabParity -v ./internal/lab > "$out/parity.log" 2>&1 || bad=1
grep -E 'want|compared|skip|busy|---' "$out/parity.log"
echo "bench-lab: the whole profile of shape four (at most 10 minutes)"
begin=$(date +%s)
if build/homenode-lab run four -- sh -c 'homenode bench --budget 10m --out /tmp/p.json < /dev/null >&2 && cat /tmp/p.json' > "$out/four.json" 2> "$out/four.log"; then
	build/homenode bench show "$out/four.json" -o html > "$out/four.html"
	took=$(($(date +%s) - begin))
	echo "took $took s, boot included: build/bench/four.json, four.html"
	[ $took -le 600 ] || bad=1
else
	bad=1
	tail -n 5 "$out/four.log"
fi
exit $bad
