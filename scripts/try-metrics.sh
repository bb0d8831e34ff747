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
end() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; wait; }
trap end EXIT

if [ -n "$promtool" ]; then
	"$promtool" check rules deploy/prometheus/alerts.yaml
	(cd deploy/prometheus && "$promtool" check config scrape.yaml)
fi

cat >"$out/agent.yaml" <<EOF
period: 2s
cgroups: ["/**"]
metrics: {listen: "127.0.0.1:9464"}
api: {socket: "$PWD/$out/api.sock"}
EOF
build/homenode agent --dry-run --config "$out/agent.yaml" --state "$PWD/$out/state" 2>"$out/agent.log" &
pids+=($!)
sed "s|scrape_interval: 15s|scrape_interval: 2s|; s|rule_files: .*|rule_files: [\"$PWD/deploy/prometheus/alerts.yaml\"]|" \
	deploy/prometheus/scrape.yaml >"$out/prometheus.yaml"
"$prometheus" --config.file="$out/prometheus.yaml" --storage.tsdb.path="$out/data" \
	--web.listen-address=127.0.0.1:9465 2>"$out/prometheus.log" &
pids+=($!)
sleep "$seconds"

[ -z "$promtool" ] || curl -sf http://127.0.0.1:9464/metrics | "$promtool" check metrics
python3 scripts/try-metrics.py http://127.0.0.1:9465 "$out"
