#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for FUZZTIME each.
set -eu
cd "$(dirname "$0")/.."
time=${FUZZTIME:-30s}
n=0
for file in $(grep -rl --include='*_test.go' '^func Fuzz' internal cmd); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "fuzz: $(dirname "$file") $target for $time"
		log=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")" 2>&1) || { echo "$log"; exit 1; }
		n=$((n + 1))
	done
done
echo "fuzz: $n targets, nothing found"
