#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Asks a real Prometheus for the numbers of 'homenode experiment': one that is built from its
# Go module, on loopback in a folder of its own, and ended afterwards. It scrapes itself.
# HOMENODE_PROMETHEUS names a program that is there already.
set -eu
cd "$(dirname "$0")/.."
version=v0.316.0
program=${HOMENODE_PROMETHEUS:-build/bin/prometheus-$version}
if [ ! -x "$program" ]; then
	echo "test-prometheus: building Prometheus $version: some minutes" >&2
	mkdir -p build/bin
	work=$(mktemp -d)
	GOFLAGS=-mod=mod GOBIN=$work go install "github.com/prometheus/prometheus/cmd/prometheus@$version"
	mv "$work/prometheus" "$program"
	rmdir "$work"
fi
work=$(mktemp -d)
server=
end() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" || true; }
	rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > "$work/config.yaml" <<YAML
global: {scrape_interval: 1s}
scrape_configs: [{job_name: self, static_configs: [{targets: ["127.0.0.1:$port"]}]}]
YAML
"$program" --config.file="$work/config.yaml" --storage.tsdb.path="$work/data" --web.listen-address="127.0.0.1:$port" > "$work/log" 2>&1 &
server=$!
tries=0
until python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/-/ready')" 2>/dev/null; do
	tries=$((tries + 1))
	if [ $tries -ge 120 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$work/log" >&2
		echo "test-prometheus: Prometheus did not start" >&2
		exit 1
	fi
	sleep 0.5
done
sleep 5 # a few scrapes
HOMENODE_PROMETHEUS_URL=http://127.0.0.1:$port go test -count=1 -v ./internal/profiling/host -run TestRealPrometheus
