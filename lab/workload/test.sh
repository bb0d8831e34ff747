#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each mode with small sizes: on the wall clock, and on a file that plays
# the lab (fake_plugin.py).  Proves options, counts and reports, not the lab:
# neither NUMA nor a PMU is needed here.
#   sh test.sh [homenode-load]
load=${1:-../../build/lab/homenode-load}
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
passed=0
failed=0
plugin=
trap 'test -n "$plugin" && kill "$plugin" 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

result() { # status, name
	if [ "$1" -eq 0 ]; then
		echo "ok     $2"
		passed=$((passed + 1))
	else
		echo "not ok $2"
		failed=$((failed + 1))
	fi
}

# The report in $tmp/out must be JSON and the python expression over d (and p = its only phase) true.
holds() { # name, expression
	as_expected "$2"
	result $? "$1"
}

as_expected() { # expression
	python3 - "$tmp/out" "$1" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
p = d["phases"][0] if len(d.get("phases", [])) == 1 else None
l = p["latency_us"] if p else None
ok = eval(sys.argv[2])
if not ok:
    print("       report:", json.dumps(d)[:600])
sys.exit(0 if ok else 1)
PY
}

# A run to its end, then an expression over its report.
run() { # name, expression, arguments…
	name=$1 expression=$2
	shift 2
	rm -f "$tmp/out"
	if timeout 300 "$load" "$@" --out "$tmp/out" 2>"$tmp/err"; then
		holds "$name" "$expression"
	else
		cat "$tmp/err"
		result 1 "$name"
	fi
}

# The same, repeated until it holds.
tried() { # times, name, expression, arguments…
	times=$1 all=$passed bad=$failed
	shift
	while [ "$times" -gt 0 ]; do
		times=$((times - 1)) passed=$all failed=$bad
		run "$@" >"$tmp/try"
		[ "$passed" -eq "$all" ] || break
	done
	cat "$tmp/try"
}

# Must end with the code and one sentence that contains the text.
refuses() { # name, code, text, arguments…
	name=$1 code=$2 text=$3
	shift 3
	timeout 300 "$load" "$@" >"$tmp/stdout" 2>"$tmp/err"
	got=$?
	if [ $got -eq "$code" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -s "$tmp/stdout" ] && grep -qF -- "$text" "$tmp/err"; then
		result 0 "$name"
	else
		echo "       exit $got, expected $code; $(cat "$tmp/err")"
		result 1 "$name"
	fi
}

# A run in the background that is stopped some time after it is ready: later if its
# workers had no CPU time meanwhile.
stopped() { # name, signal, expression, arguments…
	name=$1 signal=$2 expression=$3
	shift 3
	for after in 0.3 1 3 10; do
		rm -f "$tmp/out" "$tmp/ready"
		"$load" "$@" --out "$tmp/out" --ready "$tmp/ready" 2>"$tmp/err" &
		pid=$!
		wait_for "$tmp/ready"
		sleep $after
		begin=$(date +%s%N)
		kill -"$signal" $pid
		wait $pid
		code=$?
		took=$((($(date +%s%N) - begin) / 1000000))
		if [ $code -ne 0 ] || [ $took -gt 20000 ]; then
			echo "       exit $code after $took ms; $(cat "$tmp/err")"
			result 1 "$name"
			return
		fi
		as_expected "$expression" >"$tmp/why"
		held=$?
		[ $held -ne 0 ] || break
	done
	cat "$tmp/why"
	result $held "$name"
}

wait_for() { # file
	i=0
	while [ ! -e "$1" ] && [ $i -lt 1200 ]; do
		sleep 0.05
		i=$((i + 1))
	done
}

start_plugin() { # folder, mhz, options…
	python3 "$here/fake_plugin.py" "$@" &
	plugin=$!
	wait_for "$1/bus/pci/devices/0000:00:04.0/resource2"
}

stop_plugin() {
	kill "$plugin"
	wait "$plugin" 2>/dev/null
	plugin=
}

none="--sysfs $tmp/nothing" # the wall clock, even inside the lab
wall='d["schema"] == 1 and d["clock"] == "wall" and d["mhz"] == 1000 and p["phase"] == 1 and p["end_cycles"] > p["start_cycles"]'
exact='p["ops"] == 20000 and p["work"] == 20000 and d["threads"] == 2 and p["latency_us"] is None and p["requests"] is None and p["dropped"] is None and d["perf"] is None'

# Exact counts in every mode.
run "chase counts exactly" "$wall and $exact and d['mode'] == 'chase' and d['ws_bytes'] == 65536 and d['name'] == 'a\"b' and d['stopped_by'] == 'ops'" \
	chase --threads 2 --ws 64k --ops 10000 --name 'a"b' $none
run "chase --shared, touched by workers" "$wall and $exact" chase --threads 2 --shared --touch worker --ws 1MiB --ops 10000 $none
run "chase with extra memory, no huge pages, three warm laps" "$wall and $exact" \
	chase --threads 2 --ws 64KiB --extra 4m --thp off --warm-laps 3 --ops 10000 $none
run "chase of an odd number of ops" "p['ops'] == 3 * 4111" chase --threads 3 --ws 8k --ops 4111 $none
run "stream counts exactly" "$wall and $exact" stream --threads 2 --ws 100k --ops 10000 $none
run "stream --write counts exactly" "$wall and $exact" stream --write --threads 2 --ws 100k --ops 10000 $none
run "stream --triad counts exactly" "$wall and $exact" stream --triad --threads 2 --ws 100k --ops 10000 $none
run "rao counts exactly" "$wall and $exact" rao --threads 2 --ws 100k --sharing 4k --share-every 5 --ops 10000 $none
run "share counts exactly" "$wall and $exact and d['mode'] == 'share' and d['ws_bytes'] == 64" share --threads 2 --sharing 64 --ops 10000 $none
run "share --write counts exactly" "$wall and $exact" share --write --threads 2 --sharing 8k --ops 10000 $none
run "handoff counts exactly" "$wall and p['ops'] == 5120" handoff --threads 2 --ws 16k --ops 2560 $none
refuses "handoff of one" 2 "needs two threads" handoff --threads 1 --ws 16k --ops 256 $none
refuses "handoff of half a buffer" 2 "multiple of its 256 lines" handoff --threads 2 --ws 16k --ops 100 $none
run "chase over a file" "$wall and $exact" chase --threads 2 --ws 64k --ops 10000 --file "$tmp/map" $none
[ "$(wc -c <"$tmp/map")" -eq 131072 ]
result $? "a file is as long as its regions"
run "spin counts exactly" "$wall and $exact and d['ws_bytes'] == 1024" spin --threads 2 --ops 10000 $none
# A worker may begin late on a busy host: the test only asserts how long the run takes at least.
begin=$(date +%s%N)
run "--seconds ends it" "$wall and d['stopped_by'] == 'seconds' and p['end_cycles'] - p['start_cycles'] < 1e10" spin --seconds 0.3 $none
[ $(($(date +%s%N) - begin)) -ge 300000000 ]
result $? "--seconds is kept"
for mode in chase stream "rao --sharing 4k --share-every 3" "share --sharing 4k" spin; do
	size="--ws 64k"
	case $mode in share*|spin) size= ;; esac
	# shellcheck disable=SC2086
	run "$mode meets every 300 ops" "$wall and p['ops'] == 3 * 1000 and d['barriers'] == 3" $mode --threads 3 $size --barrier 300 --ops 1000 $none
done
run "no thread meets another without --barrier" "$wall and d['barriers'] is None" chase --threads 2 --ws 8k --ops 100 $none
run "one thread meets itself" "$wall and p['ops'] == 100 and d['barriers'] == 100" chase --ws 8k --ops 100 --barrier 1 $none
run "--cpus" "$wall and p['ops'] == 300" chase --threads 3 --ops 100 --ws 8k --cpus 0,0-0 $none
run "--bind-cpu 0" "$wall and p['ops'] == 100" chase --ops 100 --ws 8k --bind-cpu 0 $none

# Server.
sums='l["count"] == p["ops"] and sum(b[1] for b in l["buckets"]) == p["ops"] and l["p50"] <= l["p90"] <= l["p95"] <= l["p99"] <= l["p999"] <= l["max"] and l["mean"] <= l["max"]'
narrow='all(b[0] > a[0] for a, b in zip(l["buckets"], l["buckets"][1:]))'
run "open loop completes every request" "$wall and $sums and $narrow and p['ops'] == p['requests'] == 300 and p['dropped'] == 0 and p['work'] > 300 and d['unfinished'] == 0" \
	server --workers 2 --ws 1m --rate 2000 --queue 300 --ops 300 --short-share 1 $none
run "a full queue drops, and nothing gets lost" "p['dropped'] > 0 and p['requests'] == 500 == p['ops'] + p['dropped'] and d['unfinished'] == 0" \
	server --workers 1 --ws 1m --rate 1e6 --queue 4 --ops 500 --short-share 1 $none
# 2,000 requests due at once: the last waits for all others, the mean for half of them.
# A host that stops for as long as this takes disturbs the mean: some tries.
tried 5 "latency counts from the due time" "p['ops'] == 2000 and l['max'] * 1000 > 0.7 * (p['end_cycles'] - p['start_cycles']) and l['mean'] > 0.3 * l['max']" \
	server --workers 1 --ws 1m --rate 1e9 --queue 5000 --ops 2000 --short-share 1 --short-us 20:20 $none
run "closed loop" "$wall and $sums and p['ops'] == p['requests'] == 100 and p['dropped'] is None and d['unfinished'] == 0" \
	server --closed --think-us 300 --workers 2 --ws 1m --ops 50 --short-share 1 $none
run "work is fixed by the seed" "p['work'] == 100 * 20" server --closed --workers 1 --ws 1m --ops 100 --short-share 1 --short-us 39.25:39.25 $none

list() { "$load" server --ws 1m --list-requests 200 $none "$@"; }
list --rate 100 --seed 7 >"$tmp/a" && list --rate 100 --seed 7 >"$tmp/b" && list --rate 100 --seed 8 >"$tmp/c"
[ "$(wc -l <"$tmp/a")" -eq 200 ] && cmp -s "$tmp/a" "$tmp/b" && ! cmp -s "$tmp/a" "$tmp/c"
result $? "same seed, same requests; another seed, others"
list --rate 100 --seed 1 | python3 -c '
import json, sys
r = [json.loads(l) for l in sys.stdin]
us = [x["units"] * 1.960 for x in r]
short = sum(1 for x in us if x <= 101)
gap = sum(x["gap_cycles"] for x in r) / len(r) / 1e6
sys.exit(not (140 <= short <= 180 and max(us) <= 10000 and not any(101 < x < 397 for x in us) and 7 < gap < 13))'
result $? "demand: 80 % in 20-100 µs, the rest in 0.4-10 ms, Poisson at the rate"
list --rate 100 --short-share 0.5 | sed 's/"units":[0-9]*//' >"$tmp/b"
list --rate 100 | sed 's/"units":[0-9]*//' >"$tmp/c"
cmp -s "$tmp/b" "$tmp/c"
result $? "another mix leaves arrivals and lines alone"
list --closed --workers 2 --think-us 5 >"$tmp/a"
[ "$(wc -l <"$tmp/a")" -eq 400 ] && [ "$(cut -d, -f2- "$tmp/a" | sort -u | wc -l)" -gt 390 ]
result $? "closed loop: a stream of its own per worker"

# A report never takes the place of a device or a pipe.
mkfifo "$tmp/pipe"
cat "$tmp/pipe" >"$tmp/out" &
"$load" chase --ws 8k --ops 10 --out "$tmp/pipe" $none
wait $!
[ -p "$tmp/pipe" ]
result $? "a pipe stays one"
holds "a report through a pipe" "p['ops'] == 10"

# Victim.
whole='d["series"]["window_cycles"] == 10 * 1000 * 1000 and sum(d["series"]["ops"]) + d["series"]["past_ops"] == p["ops"] == l["count"] and len(d["series"]["ops"]) == len(d["series"]["longest_cycles"])'
run "victim times every op" "$wall and $whole and p['ops'] == 2000 and max(d['series']['longest_cycles']) <= l['max'] * 1000 + 1 and l['p50'] <= l['p999'] <= l['max'] and d['unfinished'] is None" \
	victim --threads 2 --ws 64k --ops 1000 --loads 16 $none
run "victim of all kinds" "$wall and $whole and p['ops'] == 1000" \
	victim --ws 64k --extra 1m --thp off --file "$tmp/vmap" --shared-bytes 128k --file-every 4 --map-every 10 --ops 1000 --bind-cpu 0 --cpus 0 $none
refuses "victim of a file that is not named" 2 "without --file" victim --shared-bytes 64k --ops 1 $none
refuses "victim that maps never" 2 'parse --map-every "0"' victim --map-every 0 $none
head -c 300000 /dev/zero >"$tmp/long"
run "a part of a file" "p['ops'] == 0" hold --ws 64k --file "$tmp/long" --open "$tmp/long" --seconds 0.1 $none
[ "$(wc -c <"$tmp/long")" -eq 300000 ]
result $? "a longer file keeps its length"
refuses "hold opens nothing" 2 "No such file" hold --ws 8k --open "$tmp/none" $none

# Stopping.
stopped "SIGTERM: chase reports" TERM "$wall and p['ops'] > 1000 and d['stopped_by'] == 'signal'" chase --threads 2 --ws 1m $none
stopped "SIGTERM: a thread that waits at a barrier ends, none was more than one ahead" TERM \
	"$wall and d['barriers'] > 0 and 3 * 500 * d['barriers'] <= p['ops'] <= 3 * 500 * (d['barriers'] + 1)" chase --threads 3 --ws 64k --barrier 500 $none
stopped "SIGINT: spin reports" INT "$wall and p['ops'] > 0 and d['stopped_by'] == 'signal'" spin $none
stopped "SIGTERM: idle open loop reports" TERM "p['ops'] == 0 and p['requests'] == 0 and l['count'] == 0 and l['mean'] is None" server --rate 0.001 --ws 1m --workers 2 $none
stopped "SIGTERM: overloaded server accounts for all" TERM "p['requests'] == p['ops'] + p['dropped'] + d['unfinished'] and d['unfinished'] > 0" \
	server --rate 1000000 --queue 1000000 --ws 1m --workers 2 $none
stopped "SIGTERM: thinking closed loop reports" TERM "p['ops'] == p['requests'] and d['unfinished'] == 0" server --closed --think-us 1e9 --short-share 1 --ws 1m $none
stopped "SIGTERM: hold ends" TERM "p['ops'] == 0 and d['mode'] == 'hold' and d['stopped_by'] == 'signal'" hold --ws 1m --threads 2 $none
stopped "SIGTERM while held: no phase" TERM "d['phases'] == [] and d['stopped_by'] == 'signal'" chase --ws 8k --hold 2 --ops 100 $none
[ ! -e "$tmp/out.tmp" ] && [ ! -e "$tmp/ready.tmp" ] && [ "$(cat "$tmp/ready")" = "$pid" ]
result $? "ready file holds the pid; nothing is left half-written"

stopped "the work so far can be read meanwhile" TERM "0 < int(open('$tmp/count').read()) <= p['work']" spin --count "$tmp/count" $none

# The model clock, played by a file.
lab="--sysfs $tmp/lab"
start_plugin "$tmp/lab" 50
begin=$(date +%s%N)
run "model clock: --seconds ends it" "d['clock'] == 'model' and d['mhz'] == 50 and p['phase'] == 0 and 0 < p['end_cycles'] - p['start_cycles'] < 5e8" \
	spin --seconds 0.25 $lab
[ $(($(date +%s%N) - begin)) -ge 250000000 ]
result $? "model clock: --seconds is kept"
run "model clock: the lab's time factor" "d['time_factor'] == 4 and p['work'] == 100 * 20" \
	server --closed --ops 100 --ws 1m --short-share 1 --short-us 196.1:196.1 $lab
run "model clock: --time-factor wins" "d['time_factor'] == 2 and p['work'] == 100 * 10" \
	server --closed --ops 100 --ws 1m --short-share 1 --short-us 196.1:196.1 --time-factor 2 $lab
rm -f "$tmp/out" "$tmp/ready"
"$load" server --rate 2000 --workers 2 --ws 1m --short-share 1 --hold 1 --out "$tmp/out" --ready "$tmp/ready" $lab &
pid=$!
wait_for "$tmp/ready"
{ sleep 0.2 && "$load" control on --phase 1 $lab >"$tmp/control" && sleep 1 && "$load" status $lab >"$tmp/status" &&
	"$load" control off --phase 2 $lab >/dev/null && sleep 1 && kill -TERM $pid && wait $pid; } 2>"$tmp/err"
result $? "held, released by control, switched to phase 2, stopped"
holds "both phases are reported, apart" \
	"[x['phase'] for x in d['phases']] == [1, 2] and all(x['ops'] > 20 for x in d['phases']) and d['phases'][1]['start_cycles'] >= d['phases'][0]['start_cycles'] + 1e7"
cp "$tmp/control" "$tmp/out"
holds "control prints the status" "d['state'] == 'on' and d['mhz'] == 50 and d['phase'] == 1 and d['model_cycles'] > 0"
cp "$tmp/status" "$tmp/out"
holds "status prints everything" \
	"d['state'] == 'on' and len(d['mc_util_permille']) == 2 and len(d['link_util_permille']) == 1 and d['vcpus'][0]['total']['loads'] == 1024 and d['vcpus'][0]['user']['loads'] == 1000"
stop_plugin
start_plugin "$tmp/dead" 50 --dead --stall
stopped "SIGTERM while the model clock stands" TERM "p['requests'] == 0" server --rate 100 --ws 1m --sysfs "$tmp/dead"
refuses "control: a dead plugin" 1 "still shows off after 10 s" control on --sysfs "$tmp/dead"
stop_plugin
printf 'x' | dd of="$tmp/dead/bus/pci/devices/0000:00:04.0/resource2" conv=notrunc 2>/dev/null
refuses "a file that is no lab" 1 "is not the lab's layout" spin --ops 1 --sysfs "$tmp/dead"

# The page cache.
"$load" pagecache --write --bytes 3000000 --file "$tmp/big" >"$tmp/out" && [ "$(wc -c <"$tmp/big")" -eq 3000000 ]
holds "pagecache writes" "d == {'bytes': 3000000}"
"$load" pagecache --file "$tmp/big" --bind-cpu 0 >"$tmp/out"
holds "pagecache reads to the end" "d == {'bytes': 3000000}"
"$load" pagecache --file "$tmp/big" --bytes 1m >"$tmp/out"
holds "pagecache reads a part" "d == {'bytes': 1048576}"

# Where memory lies. A kernel without NUMA has no policies.
if grep -q . /proc/self/numa_maps 2>/dev/null; then
	"$load" server --closed --think-us 1e9 --ws 1m --extra 2m --file "$tmp/pool" --interleave 0 --ready "$tmp/pooled" --out "$tmp/out" $none &
	holder=$!
	wait_for "$tmp/pooled"
	n=$(grep -c ' interleave' "/proc/$holder/numa_maps")
	kill $holder
	wait $holder
	result "$(test "$n" -ge 2; echo $?)" "shared and private memory are interleaved"
else
	echo "skip   interleaving: no NUMA in this kernel"
fi

"$load" patch 1000 >"$tmp/out"
holds "a thread sees code that another one changes" "d['rounds'] == 1000 and not d['stale']"

# The peers and the counter.
: >"$tmp/written"
"$load" peer write "$tmp/written" 0-1 >"$tmp/out" && [ "$(cat "$tmp/written")" = 0-1 ]
holds "peer writes" "d['return'] == 3 and d['error'] is None and d['end_cycles'] >= d['start_cycles'] and d['mhz'] > 0"
"$load" peer write /sys/kernel/mm/no 1 >"$tmp/out" 2>/dev/null
result "$(test $? -eq 2; echo $?)" "peer writes nowhere"
"$load" peer migrate-pages 999999999 0 0 >"$tmp/out"
result "$(test $? -eq 1; echo $?)" "peer migrates no process"
holds "peer says why not" "d['return'] == -1 and d['error']"
refuses "peer with a word too few" 2 "use peer migrate-pages" peer migrate-pages 1 0
refuses "peer with bad nodes" 2 'parse nodes "0,"' peer migrate-pages 1 0, 1
refuses "peer with a bad process" 2 'parse process "x"' peer migrate-pages x 0 1
refuses "drop of what is not known" 2 'parse capability "wings"' drop wings true
refuses "pages of no process" 2 "not a list" pages --pid x
refuses "pages without a value" 2 "use pages --pid" pages --pid
if [ "$(id -u)" -eq 0 ] && [ -r /proc/kpageflags ] && grep -q . /proc/self/numa_maps 2>/dev/null; then
	head -c 3145728 /dev/urandom >"$tmp/cached"
	"$load" hold --ws 1m --file "$tmp/cached" --extra 4m --thp off --ready "$tmp/held" --out "$tmp/held.json" $none &
	holder=$!
	wait_for "$tmp/held"
	"$load" pages --pid $holder --file "$tmp/cached" >"$tmp/out"
	kill $holder
	# the file may be on tmpfs
	holds "pages counts kinds" "4 << 20 <= sum(d['bytes']['anon']) < 6 << 20 and sum(d['bytes']['cache']) == 2 << 20 and d['processes'] == 1"
else
	echo "skip   pages counts kinds: not root, or no NUMA in this kernel"
fi

# Bad input.
refuses "pagecache of nothing" 2 "no --file" pagecache
refuses "pagecache of a file that is not there" 2 "No such file" pagecache --file "$tmp/none"
refuses "pagecache writes without an end" 2 "without --bytes" pagecache --write --file "$tmp/none"
refuses "bad list of CPUs" 2 'parse --cpus "3-1": not a list' chase --cpus 3-1
refuses "cut list of CPUs" 2 'parse --cpus "0,": not a list' chase --cpus 0,
refuses "bad list of nodes" 2 'parse --interleave "0;1": not a list' chase --interleave "0;1"
refuses "no such node to interleave over" 2 "interleave memory to node 900" chase --interleave 900-901 --ws 8k
refuses "bind and interleave" 2 "exclude each other" chase --interleave 0 --bind-mem 0
refuses "no such cpu for a worker" 2 "pin to cpu 5000" chase --cpus 5000 --ws 8k $none
refuses "unwritable mapping" 1 "map 8192 bytes of /nowhere/x" chase --ws 8k --file /nowhere/x $none
refuses "hold of no work" 2 "does not belong to hold" hold --ops 5
refuses "barriers of a server" 2 "does not belong to server" server --rate 1 --barrier 5
refuses "barriers every 0 ops" 2 'parse --barrier "0"' chase --barrier 0
refuses "no mode" 2 "no mode given"
refuses "unknown mode" 2 "unknown; use chase" dance
refuses "unknown option" 2 "unknown option" chase --wings 2
refuses "option of another mode" 2 "does not belong to chase" chase --triad
refuses "stray word" 2 "unknown option" chase 5
refuses "option without value" 2 "it takes a value" chase --ws
refuses "flag with value" 2 "it takes no value" chase --shared=1
refuses "bad size" 2 'parse --ws "8MB"' chase --ws 8MB
refuses "negative size" 2 "not a size" chase --ws -4096
refuses "size that overflows" 2 "not a size" chase --ws 99999999999999g
refuses "too small a size" 2 "at least 4096" chase --ws 64
refuses "zero threads" 2 'parse --threads "0"' chase --threads 0
refuses "zero ops" 2 'parse --ops "0"' chase --ops 0
refuses "bad seconds" 2 "not a number" chase --seconds nan
refuses "bad range" 2 "LOW:HIGH" server --rate 1 --short-us 100:20
refuses "bad share" 2 "not a number from 0 to 1" server --rate 1 --short-share 1.5
refuses "bad word" 2 "main or worker" chase --touch nobody
refuses "open loop without a rate" 2 "needs --rate" server
refuses "closed loop with a rate" 2 "has no rate" server --closed --rate 3
refuses "write and triad" 2 "exclude each other" stream --write --triad
refuses "no such node" 2 "bind memory to node 900" chase --bind-mem 900 --ws 8k
refuses "no such cpu" 2 "pin to cpu 5000" chase --bind-cpu 5000 --ws 8k
refuses "unknown event" 2 "unknown event" chase --perf cycles,wishes
# This machine need not have the event.
unknown=
for event in cycles instructions loads stores l1-misses l2-misses llc-misses local-loads remote-loads local-stores \
	remote-stores stall-cycles uncore-requests uncore-outstanding uncore-critical transfers-local transfers-remote \
	upgrades invalidations atomics writebacks dram0; do
	timeout 300 "$load" chase --ops 1 --ws 8k --perf $event:uk 2>&1 | grep -q "unknown event" && unknown="$unknown $event"
	"$load" --help 2>&1 | grep -qE "[ (]${event%0}([ <\\]|\$)" || unknown="$unknown $event(help)"
done
[ -z "$unknown" ] || echo "       unknown:$unknown"
result "$(test -z "$unknown"; echo $?)" "every event has its name, and the help has it"
refuses "unknown suffix" 2 "unknown suffix" chase --perf cycles:k
refuses "node without a counter" 2 "unknown event" chase --perf dram16
refuses "event named twice" 2 "named twice" chase --perf loads,loads
refuses "unwritable report" 1 "create /nowhere/x.tmp" chase --ops 1 --ws 8k --out /nowhere/x $none
refuses "unwritable count" 1 "name a file that can be written" spin --seconds 1 --count /nowhere/x $none
refuses "bad state" 2 "use off or on" control fast
refuses "control outside the lab" 1 "1af4:1110" control off $none
refuses "status outside the lab" 1 "1af4:1110" status $none
refuses "touch without a node" 2 "no --node" touch
refuses "touch outside the lab" 1 "1af4:1110" touch --node 0 $none

if command -v gcc >/dev/null; then
	gcc -O2 -std=gnu11 -Wall -Wextra -Werror -o "$tmp/hist_test" "$here/hist_test.c" "$here/hist.c" -lm && "$tmp/hist_test"
	result $? "histogram: quantiles within 5 % of a sorted array, 300 seeds"
else
	echo "skip   histogram: no gcc here"
fi

# One load per op: in the inner loop, 16 loads, dec, jnz, and nothing else.
if command -v objdump >/dev/null; then
	objdump -d --no-show-raw-insn "$load" | awk '/<chase_batch>:/,/^$/' >"$tmp/asm"
	awk '/mov +\(%r[a-z0-9]+\),%r[a-z0-9]+$/ { n++; next } n >= 16 && /dec/ { d = 1; next } d && n == 16 && /jne/ { ok = 1; exit } { n = 0; d = 0 } END { exit !ok }' "$tmp/asm"
	result $? "chase: 16 loads per 16 ops, and no other"
else
	echo "skip   chase: 16 loads per 16 ops: no objdump here"
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
