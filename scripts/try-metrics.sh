#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Scrapes a dry run of the agent on this host with a real Prometheus, and asks it every
# query of the dashboard and of the alerts.
#
#   scripts/try-metrics.sh PROMETHEUS [PROMTOOL] [SECONDS]
#
# PROMETHEUS is Debian's (apt-get install prometheus), or
# 'go install github.com/prometheus/prometheus/cmd/prometheus@v0.316.0'. Only loopback is
# used. A query that is an error fails; one without data must be on the list below.
set -euo pipefail
cd "$(dirname "$0")/.."

prometheus=${1:?path of prometheus}
promtool=${2:-}
seconds=${3:-60}
out=build/try-metrics
rm -rf "$out" && mkdir -p "$out"
pids=()
cgroups=()
end() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
	wait
	for c in "${cgroups[@]}"; do rmdir "$c" || true; done
}
trap end EXIT

# A workload of its own: a process that touches memory, in a cgroup of each hierarchy (v1),
# or of the one (v2). Both are gone at the end.
python3 -c 'import time
held = bytearray(64 << 20)
while True:
    held[::4096] = bytes(len(held) // 4096)
    time.sleep(0.05)' &
pids+=($!)
for h in /sys/fs/cgroup /sys/fs/cgroup/{cpuset,cpu,cpuacct,memory}; do
	[ -e "$h/cgroup.procs" ] || continue
	c=$h/homenode-try-$$
	mkdir "$c"
	cgroups+=("$c")
	for f in cpuset.cpus cpuset.mems; do # of v1: empty in a new one
		[ ! -e "$c/$f" ] || [ -e /sys/fs/cgroup/cgroup.controllers ] || cat "$h/$f" >"$c/$f"
	done
	echo "${pids[0]}" >"$c/cgroup.procs"
done

if [ -n "$promtool" ]; then
	"$promtool" check rules deploy/prometheus/alerts.yaml
	(cd deploy/prometheus && "$promtool" check config scrape.yaml)
fi

cat >"$out/agent.yaml" <<EOF
period: 2s
metrics: {listen: "127.0.0.1:9464"}
cgroups: ["/homenode-try-*"]
services: [{name: try, match: "/homenode-try-*"}]
EOF
build/homenode agent --dry-run --config "$out/agent.yaml" --state "$PWD/$out/state" 2>"$out/agent.log" &
pids+=($!)
for _ in $(seq 60); do # its port is that of deploy/prometheus/scrape.yaml
	curl -sf http://127.0.0.1:9464/metrics >/dev/null && break
	sleep 1
done
sed "s|scrape_interval: 15s|scrape_interval: 2s|; s|rule_files: .*|rule_files: [\"$PWD/deploy/prometheus/alerts.yaml\"]|" \
	deploy/prometheus/scrape.yaml >"$out/prometheus.yaml"
"$prometheus" --config.file="$out/prometheus.yaml" --storage.tsdb.path="$out/data" \
	--web.listen-address=127.0.0.1:9465 2>"$out/prometheus.log" &
pids+=($!)
sleep "$seconds"

[ -z "$promtool" ] || curl -sf http://127.0.0.1:9464/metrics | "$promtool" check metrics
python3 scripts/try-metrics.py http://127.0.0.1:9465 "$out"
