#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sizes of the code and of the program, each with what it should be at most: lines of Go
# that are neither tests nor generated, packages, lines of package main in cmd/homenode, the
# program's size, and the memory (VmHWM) of its shortest commands where no agent runs, median
# of 9 starts. Exit code 1 if one is above. It needs 'make build'.
set -u
cd "$(dirname "$0")/.." || exit
product() { git ls-files -co --exclude-standard "$@" | grep '\.go$' | grep -v _test.go | xargs grep -LE '^// Code generated .* DO NOT EDIT\.$'; }
lines() { product "$@" | xargs cat | wc -l; }
echo "product Go lines by room:"
for room in cmd/homenode cmd/homenode-lab internal/*/ lab; do echo "$(lines "$room") ${room%/}"; done | sort -rn | sed 's/^/  /'
python3 - "$(lines cmd internal lab)" "$(go list ./... | wc -l)" "$(lines cmd/homenode)" <<'END'
import os, statistics, sys, tempfile

lines, packages, main = map(int, sys.argv[1:])

def resident(*args):
    """Peak resident memory of a start in MB. The parent is too small to count."""
    def once():
        pid = os.posix_spawn("build/homenode", ["homenode", *args], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)])
        return os.wait4(pid, 0)[2].ru_maxrss * 1024 / 1e6
    return statistics.median(once() for _ in range(9))

missed = False
with tempfile.TemporaryDirectory() as none:
    for what, value, most in (
        ("product Go lines", lines, 109000), ("packages", packages, 75), ("lines of package main in cmd/homenode", main, 4000),
        ("MB of build/homenode", round(os.stat("build/homenode").st_size / 1e6, 1), 32),
        ("MB of memory of 'homenode status'", round(resident("status", "--state", none), 1), 17),
        ("MB of memory of 'homenode why'", round(resident("why", "--state", none, "x"), 1), 17),
    ):
        missed |= value > most
        print(f"{'UNMET' if value > most else 'ok   '} {value:>9} {what}, at most {most}")
sys.exit(missed)
END
