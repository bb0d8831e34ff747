#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Speed of a simulated fleet, with MAO on all servers and on none:
#
#   1,000 servers × 24 h × windows of a minute × 20 workloads in 60 s on 2 CPUs;
#   10,000 servers take 10 times as long, and no more memory a workload;
#   at most 20 KB a workload: resident memory / workloads;
#   the same bytes, of result and data set, with one worker and with two.
#
# Wall time is judged. CPU time (user + system) / 2 is shown beside it: other load on the host
# disturbs it least, and sizes are compared by it. Results with their spread in
# build/bench/sim.json; exit code 1 if a target is not met.
#
#   REPEATS=3           of the 1,000 servers; the 10,000 run once a side
#   SERVERS=1000        instead; the limits shrink with them
#   LARGE=10000         0: without them
#
# Memory is not judged below 1,000 servers: there it is the program's own.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
exec python3 - "${REPEATS:-3}" "${SERVERS:-1000}" "${LARGE:-10000}" <<'PYTHON'
import json, os, statistics, subprocess, sys, tempfile, time

repeats, servers, large = (int(a) for a in sys.argv[1:])
CPUS, WORKLOADS, SECONDS, BYTES = 2, 20, 60.0, 20_000
# A tenth for the larger fleet's planning, and for noise of the host.
LINEAR = 1.15

def run(side, n):
    """One fleet in a process of its own: its CPU and wall time, its memory."""
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "fleet.json")
        args = ["build/homenode-lab", "sim", "fleet", "--servers", str(n), "--days", "1", "--mao", side,
                "--workloads", str(WORKLOADS), "--workers", str(CPUS), "--out", out]
        begin = time.monotonic()
        child = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        err = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"bench-sim: {' '.join(args)}: exit code {child.returncode}: {err.decode(errors='replace')}")
        r = json.load(open(out))
    windows = n * 24 * 60
    cpu = used.ru_utime + used.ru_stime
    return {"side": side, "servers": n, "cpu_s": cpu, "wall_s": wall, "half_cpu_s": cpu / CPUS, "us_per_window": cpu / windows * 1e6,
            "rss_bytes": used.ru_maxrss * 1024, "rss_bytes_per_workload": used.ru_maxrss * 1024 / (n * r["workloads_per_server"]),
            "workloads_per_server": r["workloads_per_server"], "load": os.getloadavg()[0]}

def same_bytes(n):
    """Result and data set, with one worker and with two."""
    files = []
    with tempfile.TemporaryDirectory() as d:
        for workers in ("1", "2"):
            out, rows = os.path.join(d, "fleet" + workers), os.path.join(d, "rows" + workers)
            subprocess.run(["build/homenode-lab", "sim", "fleet", "--servers", str(n), "--days", "0.2", "--workers", workers, "--dataset", rows, "--out", out],
                           check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            files.append([open(f, "rb").read() for f in (out, rows)])
    return files[0] == files[1]

def say(text):
    print("bench-sim: " + text, flush=True)

def middle(rows, key):
    values = [r[key] for r in rows]
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "n": len(values)}

targets, runs = [], []

def judge(name, value, limit, unit, spread=None):
    met = value <= limit
    targets.append({"name": name, "value": value, "limit": limit, "unit": unit, "met": met, "spread": spread})
    span = f" ({spread['least']:.1f} to {spread['most']:.1f} in {spread['n']} runs)" if spread else ""
    say(f"{'ok   ' if met else 'UNMET'} {name}: {value:.4g} {unit}{span}, limit {limit:.4g}")

def judge_memory(rows):
    n, most = rows[0]["servers"], max(r["rss_bytes_per_workload"] for r in rows)
    if n >= 1000:
        judge(f"{n} servers, MAO {rows[0]['side']}: memory a workload", most, BYTES, "bytes")

run("on", max(1, servers // 50))  # so that the binary is in memory
for i in range(repeats):
    for side in ("on", "off") if i % 2 == 0 else ("off", "on"):  # drift of the host hits both
        runs.append(run(side, servers))
        r = runs[-1]
        say(f"{servers} servers, MAO {side}: {r['cpu_s']:.1f} s of CPU ({r['half_cpu_s']:.1f} on each of {CPUS}), {r['wall_s']:.1f} s by the clock, "
            f"{r['us_per_window']:.1f} us a window, {r['rss_bytes'] / 1e6:.0f} MB, load {r['load']:.1f}")
for side in ("on", "off"):
    mine = [r for r in runs if r["side"] == side]
    half, wall = middle(mine, "half_cpu_s"), middle(mine, "wall_s")
    judge(f"{servers} servers, MAO {side}: by the clock", wall["median"], SECONDS * servers / 1000, "s", wall)
    say(f"      {servers} servers, MAO {side}: {half['median']:.1f} s of CPU time / {CPUS} ({half['least']:.1f} to {half['most']:.1f}), "
        f"load of the host up to {max(r['load'] for r in mine):.1f}" + (": it had other work" if max(r["load"] for r in mine) > CPUS + 1 else ""))
    judge_memory(mine)
    if large:
        big = run(side, large)
        runs.append(big)
        judge(f"{large} servers, MAO {side}: CPU time a server against {servers}", (big["cpu_s"] / large) / (middle(mine, "cpu_s")["median"] / servers), LINEAR, "times")
        judge_memory([big])

few = max(2, servers // 50)
judge(f"{few} servers: results that differ between 1 worker and 2", 0 if same_bytes(few) else 1, 0, "")

result = {"schema": 1, "cpus": CPUS, "host_cpus": os.cpu_count(), "targets": targets, "runs": runs}
with open("build/bench/sim.json.new", "w") as f:
    json.dump(result, f, indent=2)
os.replace("build/bench/sim.json.new", "build/bench/sim.json")
unmet = [t["name"] for t in targets if not t["met"]]
if unmet:
    sys.exit("bench-sim: not met: " + "; ".join(unmet))
PYTHON
