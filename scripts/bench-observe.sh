#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The cost of observing: CPU time of the agent and of cAdvisor, on the same 50 cgroups of
# 10 processes of more than 100 MiB each, at the same period, in turns.
#
#   WORKLOADS=50 PROCESSES=10 PERIOD=10 ROUNDS=12 REPEATS=3 TURNS=6
#
# The memory of a workload's processes is one shared mapping that all of them touched
# (500 times 100 MiB of their own would not fit most machines), plus 2 MiB of their own:
# resident and mapped page by page, so walking it costs the same. One process in
# five uses 0.5 ms of CPU time a second, the others sleep.
#
# CPU time is the process's own clock (all threads, user and kernel). The agent runs as
# 'agent --dry-run' with every workload approved, with the calm period switched off.
# cAdvisor (scripts/cadvisor: its manager from the Go module proxy, without its HTTP
# server) watches only those cgroups: once with the metrics that the agent also
# reads, which is the run that is judged, and once with its default ones.
#
# A run of 12 rounds does not show what the agent does in one of 64. 'homenode, 128 rounds'
# runs that many, faster, and reports the CPU time of a round. The larger figure is judged.
#
# 'sending' are two agents side by side over the same 60 rounds, one of them with a hub on this
# machine, six times. Whatever else the machine does is in both. Windows are 1 s long, so that there
# are enough rounds: what is sent for one is the same as with 10 s. The hub's own CPU time is not
# counted.
#
# Result in build/bench/observe.json; exit code 1 if the agent takes more than 0.10 % of
# one CPU, or more than cAdvisor, or sending makes it take more than 1.1 times as much. What
# cannot be measured here is skipped with its reason.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
if [ "$(id -u)" != 0 ]; then
	echo "bench-observe: skipped: root is needed to make cgroups"
	exit 0
fi
${CC:-cc} -O2 -Wall -o build/bench/bench-observe scripts/bench-observe.c
# A module of its own: none of it is linked into homenode.
(cd scripts/cadvisor && CGO_ENABLED=0 ${GO:-go} build -trimpath -o ../../build/bench/cadvisor .) ||
	echo "bench-observe: cAdvisor cannot be built (no Go module proxy?): the agent is measured alone"
exec python3 scripts/bench-observe.py
