#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for FUZZTIME each; FUZZONLY is a pattern of their names.
#
# With FUZZLONG=1 instead: ten CPU-minutes for each target whose package, or what
# the package's tests feed it, changed since it last had them. What was done is
# in scripts/fuzzed.txt, a line a target: name, a sum of its sources, CPU-minutes.
set -eu
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}
done=scripts/fuzzed.txt
n=0
old=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

sum_of() { cat "$1"/*.go | sha256sum | cut -c1-16; }

once() { # package target time: minimising a long seed can take the whole time, so it is bounded
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 10x -parallel 2 "./$1" 2>&1
}

# A busy host can end a target with "context deadline exceeded" and no input (Go's workers
# had not stopped in time), or let an input take the ten seconds after which a worker is
# taken for hung. The first found nothing; the second did not if the input, which Go has
# written to testdata, passes alone. Both are tried again.
busy() { # package target: of a try that failed, its output in $out
	if ! grep -q 'Failing input' "$out"; then
		grep -q 'context deadline exceeded' "$out"
		return
	fi
	grep -qE 'deadlocked!|hung or terminated unexpectedly' "$out" || return 1
	input=$1/$(sed -n 's/.*Failing input written to \(testdata[^ ]*\).*/\1/p' "$out" | head -n 1)
	[ -f "$input" ] && go test -count=1 -run "^$2\$/^$(basename "$input")\$" "./$1" >/dev/null 2>&1 || return 1
	rm -f "$input"
}

run() {
	for try in 1 2 3 4 5; do
		once "$@" > "$out" && break
		if [ $try = 5 ] || ! busy "$1" "$2"; then
			cat "$out"
			return 1
		fi
		sleep 5
	done
	cat "$out"
}

for file in $(grep -rl --include='*_test.go' '^func Fuzz' internal cmd | LC_ALL=C sort); do
	pkg=$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | grep -E "${FUZZONLY:-.}"); do
		if [ -n "${FUZZLONG:-}" ]; then
			sum=$(sum_of "$pkg")
			if grep -q "^$pkg $target $sum " "$done" 2>/dev/null; then
				old=$((old + 1))
				continue
			fi
			time=5m # on two CPUs
		fi
		echo "fuzz: $pkg $target for $time"
		log=$(run "$pkg" "$target" "$time") || { echo "$log"; exit 1; }
		n=$((n + 1))
		if [ -n "${FUZZLONG:-}" ]; then
			grep -v "^$pkg $target " "$done" 2>/dev/null > "$done.new" || true
			echo "$pkg $target $sum 10 $(echo "$log" | sed -n 's/.*execs: \([0-9]*\).*/\1/p' | tail -n 1)" >> "$done.new"
			LC_ALL=C sort "$done.new" > "$done"
			rm -f "$done.new"
		fi
	done
done
echo "fuzz: $n targets, nothing found$([ "$old" = 0 ] || echo "; $old had their ten CPU-minutes before")"
