#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The memory of the agent's loop after a day: 8,640 windows of 50 workloads on 8
# nodes, through the real policy, state machines, status, decision log, histories,
# metrics and API: at most 30 MB resident at the end (the peak is reported beside it). The
# kernel's part (reading, counters) is left out: the windows come from a recording, steps are
# taken as done.
#
#   ROUNDS=8640  WORKLOADS=50  NODES=8
#
# Meanwhile its socket is asked for status and metrics once a second, as by Prometheus and a
# curious user. Result in build/bench/agent.json; exit code 1 if the limit is exceeded.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
exec python3 - "${ROUNDS:-8640}" "${WORKLOADS:-50}" "${NODES:-8}" <<'PYTHON'
import http.client, json, math, os, random, socket, subprocess, sys, tempfile, time

rounds, workloads, nodes = (int(a) for a in sys.argv[1:])
LIMIT, CPUS, WINDOWS = 30_000_000, 16, 12
rnd = random.Random(8)

def value(v, source="perf r01d3", how="measured"):
    return {"value": v, "how": how, "from": source}

def machine():
    return {"origin": "fake:bench-agent", "nodes": [{"id": n, "cpus": f"{n*CPUS}-{n*CPUS+CPUS-1}", "memory_bytes": 64 << 30} for n in range(nodes)],
            "distances": [[10 if i == j else 21 for j in range(nodes)] for i in range(nodes)],
            "cpus": [{"id": c, "node": c // CPUS, "online": True} for c in range(nodes * CPUS)]}

def window(seq):
    """Workloads with varying use, so that there is something to bind and unbind."""
    loads, busy = [], [0.0] * nodes
    for w in range(workloads):
        cpu = 1.2 + math.sin(seq / 9 + w) + 0.2 * rnd.random()
        home, spread = w % nodes, 0.3 if w % 3 else 0.0
        share = [spread / nodes + (1 - spread if n == home else 0) for n in range(nodes)]
        for n in range(nodes):
            busy[n] += cpu * share[n]
        loads.append({
            "id": f"/system.slice/service-{w:03d}.service", "service": "", "owner": "systemd", "approved": False, "target": None,
            "tasks": value(12, "pids.current"), "cpu": value(cpu, "cpu.stat"), "quota": value(2.0, "cpu.max"),
            "cpu_by_node": [value(cpu * s, "cpuacct.usage_percpu") for s in share],
            "anon_by_node": [value(int(s * (2 << 30)), "memory.numa_stat") for s in share],
            "file_by_node": [value(int(s * (1 << 28)), "memory.numa_stat") for s in share],
            "cycles": value(int(cpu * 3e9)), "instructions": value(int(cpu * 4e9)), "stall_cycles": value(int(cpu * 1e9)),
            "local_loads": value(int(cpu * 1e7 * (1 - spread))), "remote_loads": value(int(cpu * 1e7 * spread) + 1000),
            "binding": {"cpus": f"0-{nodes*CPUS-1}", "mems": f"0-{nodes-1}", "ours_cpus": False, "ours_mems": False, "pinned_cpus": False, "pinned_mems": False}})
    return {"schema": 1, "seq": seq, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1767225600 + 10 * seq)), "length_ns": 10**10,
            "nodes": [{"id": n, "cpus": f"{n*CPUS}-{n*CPUS+CPUS-1}", "cpu_busy": value(min(busy[n], CPUS), "/proc/stat"), "memory_bytes": value(64 << 30, "meminfo"),
                       "free_bytes": value(20 << 30, "meminfo"), "file_bytes": value(8 << 30, "meminfo"), "anon_bytes": value(30 << 30, "meminfo")} for n in range(nodes)],
            "workloads": loads}

class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)

def ask(path, target):
    try:
        c = Local(path, timeout=5)
        c.request("GET", target, headers={"Host": "homenode"})
        return len(c.getresponse().read())
    except OSError:
        return 0

with tempfile.TemporaryDirectory() as d:
    recording, config, state = (os.path.join(d, n) for n in ("day.jsonl", "agent.yaml", "state"))
    with open(recording, "w") as f:
        f.write(json.dumps({"schema": 1, "kind": "homenode-windows", "period_ns": 10**10, "machine": machine()}) + "\n")
        for seq in range(1, WINDOWS + 1):
            f.write(json.dumps(window(seq)) + "\n")
    with open(config, "w") as f:
        f.write('services: [{name: all, match: "/system.slice/*", approved: true, target_local_ratio: 0.9}]\n')
    child = subprocess.Popen(["build/homenode", "soak", recording, "--config", config, "--state", state, "--rounds", str(rounds)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    asked = {"/v1/status": 0, "/metrics": 0}
    while child.poll() is None:
        time.sleep(1)
        for target in asked:
            asked[target] = max(asked[target], ask(os.path.join(state, "api.sock"), target))
    out, err = child.communicate()
    if child.returncode:
        sys.exit(f"bench-agent: soak: exit code {child.returncode}: {err.decode(errors='replace')}")
    r = json.loads(out)
    files = {n: os.path.getsize(os.path.join(state, n)) for n in os.listdir(state) if os.path.isfile(os.path.join(state, n))}
rss = r["rss_anon_bytes"] + r["rss_file_bytes"]
met = rss <= LIMIT
p99, sofar = None, 0
bounds = [50, 100, 250, 1000, 5000, 20000, 100000, 500000, 2e6, 1e7, 6e7]
for b, n in zip(bounds, r["decide_times"]["counts"]):
    sofar += n
    if p99 is None and sofar >= 0.99 * r["decide_times"]["count"]:
        p99 = b
print(f"bench-agent: {'ok   ' if met else 'UNMET'} {r['rounds']} rounds of {r['workloads']} workloads on {r['nodes']} nodes: {rss/1e6:.1f} MB resident at the end, limit {LIMIT/1e6:.0f} "
      f"({r['rss_anon_bytes']/1e6:.1f} anonymous, {r['rss_file_bytes']/1e6:.1f} of the program; {r['vm_hwm_bytes']/1e6:.1f} at its peak); {r['cpu_s']/r['rounds']*1e3:.2f} ms of CPU a round, deciding p99 ≤ {p99} us")
print(f"bench-agent: decisions {r['decisions']}; answers of {asked['/v1/status']} bytes (status) and {asked['/metrics']} (metrics); files {files}")
if not all(asked.values()):
    print("bench-agent: the socket did not answer in time: the API's memory is not in the figure")
json.dump({"schema": 1, "targets": [{"name": "agent RSS after a day", "value": rss, "peak": r["vm_hwm_bytes"], "limit": LIMIT, "unit": "bytes", "met": met}], "run": r, "asked_bytes": asked, "files": files},
          open("build/bench/agent.json", "w"), indent=2)
sys.exit(0 if met else 1)
PYTHON
