#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the conformance tests of the stores against a real ClickHouse: Debian's server, which
# is old (18.16), on loopback in a folder of its own, ended afterwards. Where HOMENODE_CLICKHOUSE
# names a server, that one is used. Then that server is killed while a hub writes to it:
# HOMENODE_KILL_POINTS times. With a command, that is run instead of the tests.
set -eu
cd "$(dirname "$0")/.."
if [ -z "${HOMENODE_CLICKHOUSE:-}" ]; then
	if ! command -v clickhouse-server >/dev/null 2>&1; then
		[ "$(id -u)" = 0 ] || { echo "test-clickhouse: clickhouse-server is missing: install it, or run this as root" >&2; exit 1; }
		echo "test-clickhouse: installing clickhouse-server"
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update >/dev/null
		apt-get -q install -y --no-install-recommends clickhouse-server >/dev/null
	fi
	work=$(mktemp -d)
	server=
	stop() {
		[ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" || true; }
		server=
	}
	end() {
		stop
		rm -rf "$work"
	}
	trap end EXIT
	trap 'exit 1' INT TERM
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	mkdir "$work/data" "$work/tmp" "$work/fmt"
	cat > "$work/config.xml" <<XML
<yandex>
  <logger><level>warning</level><log>$work/log</log><errorlog>$work/err</errorlog></logger>
  <listen_host>127.0.0.1</listen_host><tcp_port>$port</tcp_port>
  <path>$work/data/</path><tmp_path>$work/tmp/</tmp_path><format_schema_path>$work/fmt/</format_schema_path>
  <mark_cache_size>268435456</mark_cache_size><users_config>users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
</yandex>
XML
	cat > "$work/users.xml" <<'XML'
<yandex>
  <profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
  <users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
  <quotas><default/></quotas>
</yandex>
XML
	(cd "$work" && exec clickhouse-server --config-file="$work/config.xml") > "$work/out" 2>&1 &
	server=$!
	HOMENODE_CLICKHOUSE=127.0.0.1:$port
	tries=0
	until python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || { cat "$work/out" "$work/err" >&2; echo "test-clickhouse: the server does not answer" >&2; exit 1; }
		sleep 1
	done
fi
export HOMENODE_CLICKHOUSE
if [ $# -gt 0 ]; then
	"$@"
else
	go test -count=1 -timeout 30m -v ./internal/store/clickhouse
	if [ -n "${server:-}" ]; then # the rest kills its server
		stop
		HOMENODE_CLICKHOUSE_CONFIG=$work/config.xml go test -count=1 -timeout 60m -run TestKilledServer -v ./cmd/homenode-hub
	fi
fi
