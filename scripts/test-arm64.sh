#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The simulator's bits on another CPU: its goldens, under an emulated arm64. Needs
# qemu-user-static, which it installs on Debian.
set -eu
cd "$(dirname "$0")/.."
command -v qemu-aarch64-static > /dev/null || {
	[ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || { echo "test-arm64: qemu-aarch64-static is missing: install qemu-user-static" >&2; exit 2; }
	apt-get install -y -q qemu-user-static > /dev/null
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() { # package, tests
	GOARCH=arm64 CGO_ENABLED=0 go test -c -o "$out/test" "./$1"
	(cd "$1" && qemu-aarch64-static "$out/test" -test.run "$2" -test.v > "$out/log" 2>&1) || { tail -n 20 "$out/log" >&2; exit 1; }
	passed=$(grep -c '^--- PASS' "$out/log") || { echo "test-arm64: $1: no test called $2" >&2; exit 1; }
	echo "test-arm64: $1: $passed goldens are the same"
}
run internal/sim/detmath 'TestBits'
run internal/sim 'TestSameBytes'
run internal/sim/scenario 'TestGolden'
run internal/sim/fleet 'TestGeneratorIsFrozen'
