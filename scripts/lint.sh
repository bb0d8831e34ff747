#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Format, vet, linters and documents: everything that is checked without running
# the program. All of them run, so that one call shows all errors.
set -u
cd "$(dirname "$0")/.." || exit
failed=

step() { # name command…
	name=$1
	shift
	"$@" || { failed="$failed $name" && echo "lint: $name: see above" >&2; }
}

gofmt_clean() {
	bad=$(gofmt -l cmd internal lab/shapes)
	[ -z "$bad" ] || { echo "run gofmt -w on: $bad" >&2; return 1; }
}

# SC3013: dash and busybox have -nt. SC2187: busybox's ash is checked as dash.
scripts_of_host() {
	# shellcheck disable=SC2046
	shellcheck -S warning -e SC3013,SC2187 $(git ls-files '*.sh' ':!internal' lab/guest/init .ci/run)
}

# The lab's cases have no #! and set base in the lib.sh that they share (SC2154).
scripts_of_guest() {
	# shellcheck disable=SC2046
	shellcheck -S warning -s sh -e SC2154 $(git ls-files 'internal/*.sh')
}

c_files() { git ls-files '*.c' '*.h'; }

# The list of known vulnerabilities is on the network. Without it the result is unknown. The
# script says so and does not fail: a check must also work without a network.
vulnerabilities() {
	out=$(build/bin/govulncheck ./... 2>&1) && return
	case $out in
	*'govulncheck: fetching vulnerabilities'*)
		echo "lint: govulncheck cannot reach its database: NOTHING is known about vulnerabilities in this run" >&2
		;;
	*)
		echo "$out" >&2
		return 1
		;;
	esac
}

# What needs no Go compiler: it runs beside what does, and is printed after it.
others() {
	step shellcheck scripts_of_host
	step shellcheck-guest scripts_of_guest
	# shellcheck disable=SC2046
	step clang-format build/venv/bin/clang-format --dry-run -Werror $(c_files)
	step documents scripts/docs.sh
	echo "$failed" > "$beside/failed"
}

beside=$(mktemp -d)
trap 'rm -rf "$beside"' EXIT
others > "$beside/out" 2>&1 &
step gofmt gofmt_clean
step vet go vet ./...
step golangci-lint build/bin/golangci-lint run ./...
step govulncheck vulnerabilities
wait
cat "$beside/out"
failed=$failed$(cat "$beside/failed" || echo " others")
[ -z "$failed" ] || { echo "lint: failed:$failed" >&2; exit 1; }
