#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for FUZZTIME each, as many at once as there are CPUs; FUZZONLY is
# a pattern of their names.
#   scripts/fuzz.sh [PACKAGE TARGET]    only this one
# The tests of each package are built once, into build/fuzz.
#
# With FUZZLONG=1 instead: ten CPU-minutes for each target if its package, or the input of the
# package's tests, changed since the last such run. FUZZWORKERS at a time (2) work on one
# target, for as many rounds as its CPU time takes: a busy host makes it longer, not less.
# scripts/fuzzed.txt records the runs, one line per target: package, name, a sum of its
# sources, CPU-minutes, inputs tried, commit.
set -eu
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}
done=scripts/fuzzed.txt
workers=1
binaries=$PWD/build/fuzz
corpus=$(go env GOCACHE)/fuzz/homenode # where 'go test -fuzz' keeps what it found
n=0
old=0
out=$(mktemp)
trap 'rm -f "$out" "$out.run"' EXIT

sum_of() { cat "$1"/*.go | sha256sum | cut -c1-16; }

binary() { echo "$binaries/$(echo "$1" | tr / -).test"; } # package

# The package's instrumented tests, without symbols for debuggers: a stack has its lines all
# the same, and linking takes half the time. 'go test -fuzz' links once per target instead.
build() { # package
	go test -c -fuzz . -vet=off -ldflags '-s -w' -o "$(binary "$1")" "./$1"
}

tests() { # package flags…: runs its tests where 'go test' would
	program=$(binary "$1")
	cd "$1" || return
	shift
	"$program" "$@"
}

once() { # package target time: minimising a long seed can take the whole time, so it is bounded
	(tests "$1" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$3" -test.fuzzminimizetime 10x \
		-test.parallel "$workers" -test.fuzzcachedir "$corpus/$1") 2>&1
}

# A busy host can end a target with "context deadline exceeded" and no input (Go's workers
# had not stopped in time), or let an input take the ten seconds after which a worker is
# taken for hung. The first is no finding. The second is none if the input, which Go has
# written to testdata, passes alone. Both are tried again.
busy() { # package target: of a try that failed, its output in $out
	if ! grep -q 'Failing input' "$out"; then
		grep -q 'context deadline exceeded' "$out"
		return
	fi
	grep -qE 'deadlocked!|hung or terminated unexpectedly' "$out" || return 1
	input=$1/$(sed -n 's/.*Failing input written to \(testdata[^ ]*\).*/\1/p' "$out" | head -n 1)
	[ -f "$input" ] && (tests "$1" -test.run "^$2\$/^$(basename "$input")\$") >/dev/null 2>&1 || return 1
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

fuzz() { # package target time: prints a line, and what went wrong
	echo "fuzz: $1 $2 for $3"
	run "$@" > "$out.run" || { echo "fuzz: $1 $2: $(cat "$out.run")"; exit 1; }
}

all() { # package target, a line each
	for file in $(grep -rl --include='*_test.go' '^func Fuzz' internal cmd | LC_ALL=C sort); do
		sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$(dirname "$file") \1|p" "$file"
	done | grep -E "${FUZZONLY:-.}"
}

remember() { # package target sum seconds inputs: it had its ten CPU-minutes
	grep -v "^$1 $2 " "$done" 2>/dev/null > "$done.new" || true
	echo "$1 $2 $3 $(($4 / 60)) $5 $(git describe --always --dirty --exclude '*')" >> "$done.new"
	LC_ALL=C sort "$done.new" > "$done"
	rm -f "$done.new"
}

long() { # package target: unless it had its time
	sum=$(sum_of "$1")
	if grep -q "^$1 $2 $sum " "$done" 2>/dev/null; then
		old=$((old + 1))
		return
	fi
	workers=${FUZZWORKERS:-2}
	export GOMAXPROCS="$workers"
	build "$1"
	before=$(seconds)
	tried=0
	while spent=$(($(seconds) - before)) && [ "$spent" -lt 600 ]; do
		fuzz "$1" "$2" "$(((600 - spent) / workers + 1))s"
		tried=$((tried + $(inputs)))
	done
	remember "$1" "$2" "$sum" "$spent" "$tried"
	n=$((n + 1))
}

inputs() { # of the last run
	sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$out" | tail -n 1 | grep . || echo 0
}

# The CPU time in seconds of what this script started and that has ended.
seconds() { awk '{ print int(($16 + $17) / '"$(getconf CLK_TCK)"') }' "/proc/$$/stat"; }

case ${1:-} in
--build) # only this package's tests
	build "$2"
	exit
	;;
--built) # only this target, of tests that are built
	fuzz "$2" "$3" "$time"
	exit
	;;
?*)
	build "$1"
	fuzz "$1" "$2" "$time"
	exit
	;;
esac
targets=$(all)
if [ -n "${FUZZLONG:-}" ]; then
	while read -r pkg target; do
		long "$pkg" "$target" < /dev/null
	done <<-EOF
	$targets
	EOF
else
	packages=$(echo "$targets" | cut -d ' ' -f 1 | uniq)
	# The first is cmd/homenode, which needs most of the others. Two at once would compile
	# the same packages twice.
	scripts/fuzz.sh --build "$(echo "$packages" | head -n 1)"
	echo "$packages" | tail -n +2 | xargs -r -P "$(nproc)" -L 1 scripts/fuzz.sh --build
	echo "$targets" | xargs -P "$(nproc)" -L 1 scripts/fuzz.sh --built
	n=$(echo "$targets" | wc -l)
fi
echo "fuzz: $n targets, nothing found$([ "$old" = 0 ] || echo "; $old had their ten CPU-minutes before")"
