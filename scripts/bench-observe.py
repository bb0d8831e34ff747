# SPDX-License-Identifier: Apache-2.0
# The body of bench-observe.sh, which describes it.
import contextlib, http.client, json, os, re, signal, socket, statistics, subprocess, sys, tempfile, time

env = lambda name, default: float(os.environ.get(name, default))
WORKLOADS, PROCESSES, ROUNDS, REPEATS = (int(env(n, d)) for n, d in (("WORKLOADS", 50), ("PROCESSES", 10), ("ROUNDS", 12), ("REPEATS", 3)))
PERIOD, FAST, MANY = env("PERIOD", 10), env("FAST_PERIOD", 0.5), int(env("MANY", 128))
WARM = 5.5  # periods before the first reading of the clock: new workloads are looked at closely twice
LIMIT = 0.10  # % of one CPU
NAME = f"homenode-bench-{os.getpid()}-"
HOMENODE, HUB, CADVISOR, LOADS = os.environ.get("HOMENODE", "build/homenode"), "build/homenode-hub", "build/bench/cadvisor", "build/bench/bench-observe"
HIERARCHIES = ["", "unified", "cpuset", "cpu", "cpuacct", "cpu,cpuacct", "memory", "perf_event", "pids"]
ARMS = os.environ.get("ARMS", "homenode,homenode sending,cadvisor least,cadvisor default,homenode 128 rounds").split(",")
TOGETHER = 6  # windows that go to a hub in one request
SENDING = 1.1  # limit: CPU time with a hub relative to that without


def hierarchies():
    found = [os.path.join("/sys/fs/cgroup", h).rstrip("/") for h in HIERARCHIES]
    return [d for d in found if os.path.isfile(d + "/cgroup.procs") and not os.path.islink(d)]


@contextlib.contextmanager
def cgroups():
    """The workloads' cgroups in every hierarchy; yields the prefix of their directories."""
    made = []
    try:
        for h in hierarchies():
            if os.path.isfile(h + "/cgroup.subtree_control"):
                with contextlib.suppress(OSError), open(h + "/cgroup.controllers") as f, open(h + "/cgroup.subtree_control", "w") as g:
                    g.write(" ".join("+" + c for c in f.read().split() if c in ("cpuset", "cpu", "memory")))
            for w in range(WORKLOADS):
                d = f"{h}/{NAME}{w:02d}"
                os.mkdir(d)
                made.append(d)
                for name in "cpuset.cpus", "cpuset.mems":
                    if os.path.isfile(h + "/cgroup.clone_children") and os.path.isfile(f"{h}/{name}"):
                        with open(f"{h}/{name}") as f, open(f"{d}/{name}", "w") as g:
                            g.write(f.read())
        yield [f"{h}/{NAME}" for h in hierarchies()]
    finally:
        left = made
        for _ in range(300):  # its processes are still dying
            left = [d for d in left if not removed(d)]
            if not left:
                break
            time.sleep(0.1)
        for d in left:
            print(f"bench-observe: {d} could not be removed", file=sys.stderr)


def removed(d):
    try:
        os.rmdir(d)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


@contextlib.contextmanager
def child(args, **more):
    p = subprocess.Popen(args, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **more})
    try:
        yield p
    finally:
        if p.stdin:
            p.stdin.close()  # the loads end by themselves
        else:
            p.terminate()
        try:
            p.wait(20)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


@contextlib.contextmanager
def loads(dirs):
    args = [LOADS, str(WORKLOADS), str(PROCESSES), "100", "2", str(max(1, PROCESSES // 5)), "500", "1000", *dirs]
    with child(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        pids = [int(l) for l in p.stdout]
        if len(pids) != WORKLOADS * PROCESSES:
            sys.exit(f"bench-observe: {len(pids)} of {WORKLOADS * PROCESSES} processes started")
        yield pids


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) << 10


def clock(pid):
    """CPU time of a process, its threads that ended included, in seconds."""
    return time.clock_gettime((~pid << 3) | 2)


def config(state, period):
    """Every workload is approved; everything else is as by default, but that nothing is
    ever calm."""
    return f"""period: {period}s
calm_period: {period}s
cgroups: ["/{NAME}*"]
services: [{{name: bench, match: "/{NAME}*", approved: true, target_local_ratio: 0.9}}]
"""


@contextlib.contextmanager
def hub(wanted):
    """A hub with an embedded store; yields what it tells an agent to have in its
    configuration."""
    if not wanted:
        yield ""
        return
    with tempfile.TemporaryDirectory() as d, child([HUB, "dev", "--dir", d, "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
        said = ""
        while "certificate:" not in said:
            line = p.stdout.readline()
            if not line:
                sys.exit(f"bench-observe: the hub ended: exit code {p.wait()}")
            said += line
        yield said[said.index("\nhub:") + 1:]


def homenode(state, period, sending):
    file = os.path.join(state, "agent.yaml")
    with open(file, "w") as f:
        f.write(config(state, period) + sending)
    return [HOMENODE, "agent", "--dry-run", "--config", file, "--state", os.path.join(state, "state")]


def cadvisor(metrics):
    args = [CADVISOR, f"--housekeeping_interval={PERIOD}s", "--allow_dynamic_housekeeping=false", "--global_housekeeping_interval=1h",
            "--update_machine_info_interval=1h", "--docker_only", f"--raw_cgroup_prefix_whitelist=/{NAME}"]
    return args + [f"--enable_metrics={metrics}", "--disable_root_cgroup_stats=true"] if metrics else args


class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


def status_of(state):
    """Asks the agent: outside of what is measured, since answering costs it more than a
    round does."""
    c = Local(os.path.join(state, "state", "dry-run", "api.sock"), timeout=10)
    c.request("GET", "/v1/status", headers={"Host": "homenode"})
    return json.loads(c.getresponse().read())


def rounds_of(state):
    return status_of(state)["rounds"]


def started(state, p):
    """Waits for the first window, which reads everything that later windows read rarely."""
    for _ in range(1200):
        with contextlib.suppress(OSError, KeyError, ValueError):
            return rounds_of(state)
        if p.poll() is not None:
            sys.exit(f"bench-observe: the agent ended: exit code {p.returncode}")
        time.sleep(0.1)
    sys.exit("bench-observe: the agent did not read its first window")


def run(arm, log):
    """One turn of one arm: CPU time, and the evidence that it did its work."""
    with tempfile.TemporaryDirectory() as state, open(log, "w+") as err, hub(arm.endswith("sending")) as sending:
        own = arm.startswith("homenode")
        period, rounds = (FAST, MANY) if arm.endswith("rounds") else (PERIOD, ROUNDS)
        args = homenode(state, period, sending) if own else cadvisor("cpu,percpu,memory,memory_numa,cpuset" if arm.endswith("least") else "")
        with child(args, stdout=err, stderr=subprocess.STDOUT) as p:
            if own:
                started(state, p)
            time.sleep(WARM * period)
            seen = rounds_of(state) if own else 0
            time.sleep(0.1)
            before, began = clock(p.pid), time.monotonic()
            time.sleep(rounds * period)
            cpu, took = clock(p.pid) - before, time.monotonic() - began
            r = {"arm": arm, "cpu_s": cpu, "wall_s": took, "rss_bytes": resident(p.pid)}
            if own:
                status = status_of(state)
                r["rounds"] = status["rounds"] - seen
                r["round_ms"] = cpu / max(1, r["rounds"]) * 1e3
                r.update(known(status))
                if sending:
                    r["sent"], r["waiting"] = status["hub"]["sent_batches"], status["hub"]["waiting_batches"]
                    if r["sent"] + r["waiting"] < r["rounds"] or r["waiting"] > TOGETHER:
                        sys.exit(f"bench-observe: the hub has {r['sent']} batches of {r['rounds']} rounds, and {r['waiting']} wait: {status['hub']}")
            else:
                p.send_signal(signal.SIGUSR1)
                time.sleep(1)
                err.seek(0)
                r["told"] = [json.loads(l) for l in err if l.startswith('{"containers"')][0]
            # Of the slower clock's 128 rounds: the cost of a round gives the share at
            # the period.
            r["percent"] = r["round_ms"] / 1e3 / PERIOD * 100 if own and period != PERIOD else cpu / took * 100
            return r


def known(status):
    """Which figures of a workload the agent knew: so that an idle agent is noticed."""
    w = status["window"]["workloads"]
    def has(v):
        return all(map(has, v)) if isinstance(v, list) else isinstance(v, dict) and v.get("how", "unknown") != "unknown"
    return {"workloads": len(w), "known": sorted(k for k, v in w[0].items() if (isinstance(v, (dict, list)) and v and has(v))) if w else [],
            "problems": status["window"].get("problems") or []}


def main():
    arms = [a for a in ARMS if not a.startswith("cadvisor") or os.path.exists(CADVISOR)]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    out = {"schema": 1, "commit": commit, "kernel": os.uname().release, "workloads": WORKLOADS, "processes": WORKLOADS * PROCESSES, "period_s": PERIOD, "rounds": ROUNDS, "runs": []}
    with cgroups() as dirs, loads(dirs) as pids:
        out["resident_bytes"] = {"least": min(map(resident, pids)), "sum": sum(map(resident, pids))}
        print(f"bench-observe: {len(pids)} processes in {WORKLOADS} cgroups of {len(dirs)} hierarchies, each at least {out['resident_bytes']['least'] >> 20} MiB resident", flush=True)
        for repeat in range(REPEATS):
            turn = arms[repeat % len(arms):] + arms[:repeat % len(arms)]
            for arm in turn:
                r = run(arm, f"build/bench/observe-{arm.replace(' ', '-')}.log")
                out["runs"].append(r)
                more = f", {r['round_ms']:.2f} ms a round" if "round_ms" in r else ""
                print(f"bench-observe: {arm}: {r['percent']:.4f} % of one CPU{more}, {r['rss_bytes'] / 1e6:.0f} MB resident", flush=True)
    sys.exit(judge(out, arms))


def judge(out, arms):
    share = {}
    for arm in arms:
        turns = [r["percent"] for r in out["runs"] if r["arm"] == arm]
        share[arm] = {"median": statistics.median(turns), "least": min(turns), "most": max(turns)}
    own = max(share[a]["median"] for a in arms if a.startswith("homenode") and a != "homenode sending")
    peer = share.get("cadvisor least", {}).get("median")
    out["percent"] = share
    out["targets"] = [{"name": "observing, % of one CPU", "value": own, "limit": LIMIT, "met": own <= LIMIT}]
    if peer is not None:
        out["targets"].append({"name": "observing, of cAdvisor's least", "value": own / peer, "limit": 1, "met": own < peer})
    if "homenode sending" in share:
        value = share["homenode sending"]["median"] / share["homenode"]["median"]
        out["targets"].append({"name": "observing and sending to a hub, of observing", "value": value, "limit": SENDING, "met": value <= SENDING})
    if "cadvisor default" in share:
        out["of_cadvisor_default"] = own / share["cadvisor default"]["median"]
    with open("build/bench/observe.json", "w") as f:
        json.dump(out, f, indent=1)
    for t in out["targets"]:
        print(f"bench-observe: {'ok   ' if t['met'] else 'UNMET'} {t['name']}: {t['value']:.4f}, limit {t['limit']}")
    return 0 if all(t["met"] for t in out["targets"]) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is ended and removed
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
