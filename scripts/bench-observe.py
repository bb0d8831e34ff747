# SPDX-License-Identifier: Apache-2.0
# The body of bench-observe.sh, which describes it.
import contextlib, http.client, json, os, random, re, signal, socket, statistics, subprocess, sys, tempfile, time

env = lambda name, default: float(os.environ.get(name, default))
WORKLOADS, PROCESSES, ROUNDS, REPEATS = (int(env(n, d)) for n, d in (("WORKLOADS", 50), ("PROCESSES", 10), ("ROUNDS", 12), ("REPEATS", 3)))
PERIOD, FAST, MANY = env("PERIOD", 10), env("FAST_PERIOD", 0.5), int(env("MANY", 128))
WARM = 5.5  # periods before the first reading of the clock: new workloads are looked at closely twice
LIMIT = 0.10  # % of one CPU
NAME = f"homenode-bench-{os.getpid()}-"
HOMENODE, HUB, CADVISOR, LOADS = os.environ.get("HOMENODE", "build/homenode"), os.environ.get("HUB", "build/homenode-hub"), "build/bench/cadvisor", "build/bench/bench-observe"
HIERARCHIES = ["", "unified", "cpuset", "cpu", "cpuacct", "cpu,cpuacct", "memory", "perf_event", "pids"]
ARMS = os.environ.get("ARMS", "homenode,cadvisor least,cadvisor default,homenode 128 rounds,sending").split(",")
# Two agents side by side, one of them with a hub: their rounds, their period, and their turns.
BESIDE, BESIDE_PERIOD, TURNS = int(env("BESIDE", 60)), env("BESIDE_PERIOD", 1), int(env("TURNS", 6))
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


@contextlib.contextmanager
def agent(log, period, with_hub=False):
    """An agent that has read its first window; yields its state folder and pid."""
    with tempfile.TemporaryDirectory() as state, open(log, "w") as err, hub(with_hub) as sending:
        with child(homenode(state, period, sending), stdout=err, stderr=subprocess.STDOUT) as p:
            started(state, p)
            yield state, p.pid


def agents(period, rounds, *pairs):
    """The CPU time of each agent (state folder, pid) over the same rounds, and the evidence
    that it did its work."""
    time.sleep(WARM * period)
    seen = [rounds_of(state) for state, _ in pairs]
    time.sleep(0.1)
    before, began = [clock(pid) for _, pid in pairs], time.monotonic()
    time.sleep(rounds * period)
    cpu, took = [clock(pid) - b for (_, pid), b in zip(pairs, before)], time.monotonic() - began
    for (state, pid), at, used in zip(pairs, seen, cpu):
        status = status_of(state)
        did = status["rounds"] - at
        r = {"cpu_s": used, "wall_s": took, "rss_bytes": resident(pid), "rounds": did, "round_ms": used / max(1, did) * 1e3}
        # Of the faster clock's rounds: the cost of a round gives the share at the period.
        r["percent"] = r["round_ms"] / 1e3 / PERIOD * 100 if period != PERIOD else used / took * 100
        r.update(known(status))
        if "sent_batches" in status.get("hub", {}):
            r["sent"], r["waiting"] = status["hub"]["sent_batches"], status["hub"]["waiting_batches"]
            if r["sent"] + r["waiting"] < did or r["waiting"] > TOGETHER:
                sys.exit(f"bench-observe: the hub has {r['sent']} batches of {did} rounds, and {r['waiting']} wait: {status['hub']}")
        yield r


def run(arm, log, repeat):
    """One turn of one arm; several results where several run side by side."""
    if arm.startswith("homenode"):
        period, rounds = (FAST, MANY) if arm.endswith("rounds") else (PERIOD, ROUNDS)
        with agent(log, period) as a:
            return [{"arm": arm, **r} for r in agents(period, rounds, a)]
    if arm == "cadvisor least" or arm == "cadvisor default":
        return [{"arm": arm, **run_cadvisor(arm, log)}]
    # Side by side, so that whatever else the machine does is in both. How far apart their rounds
    # are is by chance: the second finds the caches as the first left them, and the loads do
    # something else then. So the distance is another one each time, and who is first changes.
    names = ["without a hub", "sending"][::-1 if repeat % 2 else 1]
    with agent(log, BESIDE_PERIOD, names[0] == "sending") as first:
        time.sleep(random.uniform(0.2, 0.8) * BESIDE_PERIOD)
        with agent(log + ".second", BESIDE_PERIOD, names[1] == "sending") as second:
            return [{"arm": a, **r} for a, r in zip(names, agents(BESIDE_PERIOD, BESIDE, first, second))]


def run_cadvisor(arm, log):
    with open(log, "w+") as err, child(cadvisor("cpu,percpu,memory,memory_numa,cpuset" if arm.endswith("least") else ""), stdout=err, stderr=subprocess.STDOUT) as p:
        time.sleep(WARM * PERIOD)
        before, began = clock(p.pid), time.monotonic()
        time.sleep(ROUNDS * PERIOD)
        r = {"cpu_s": clock(p.pid) - before, "wall_s": time.monotonic() - began, "rss_bytes": resident(p.pid)}
        p.send_signal(signal.SIGUSR1)
        time.sleep(1)
        err.seek(0)
        r["told"] = [json.loads(l) for l in err if l.startswith('{"containers"')][0]
        r["percent"] = r["cpu_s"] / r["wall_s"] * 100
        return r


def known(status):
    """Which figures of a workload the agent knew: so that an idle agent is noticed."""
    w = status["window"]["workloads"]
    def has(v):
        return all(map(has, v)) if isinstance(v, list) else isinstance(v, dict) and v.get("how", "unknown") != "unknown"
    return {"workloads": len(w), "known": sorted(k for k, v in w[0].items() if (isinstance(v, (dict, list)) and v and has(v))) if w else [],
            "problems": status["window"].get("problems") or []}


def main():
    every = ("homenode", "homenode 128 rounds", "cadvisor least", "cadvisor default", "sending")
    if wrong := [a for a in ARMS if a not in every]:
        sys.exit(f"bench-observe: ARMS: no arm {wrong[0]!r}: use some of {', '.join(every)}")
    arms = [a for a in ARMS if not a.startswith("cadvisor") or os.path.exists(CADVISOR)]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    out = {"schema": 1, "commit": commit, "kernel": os.uname().release, "workloads": WORKLOADS, "processes": WORKLOADS * PROCESSES, "period_s": PERIOD, "rounds": ROUNDS, "runs": []}
    with cgroups() as dirs, loads(dirs) as pids:
        out["resident_bytes"] = {"least": min(map(resident, pids)), "sum": sum(map(resident, pids))}
        print(f"bench-observe: {len(pids)} processes in {WORKLOADS} cgroups of {len(dirs)} hierarchies, each at least {out['resident_bytes']['least'] >> 20} MiB resident", flush=True)
        one = [a for a in arms if a != "sending"]
        plan = [(a, i) for i in range(REPEATS if one else 0) for a in one[i % len(one):] + one[:i % len(one)]]
        for arm, repeat in plan + [("sending", i) for i in range(TURNS if "sending" in arms else 0)]:
            for r in run(arm, f"build/bench/observe-{arm.replace(' ', '-')}.log", repeat):
                out["runs"].append(r)
                more = f", {r['round_ms']:.2f} ms a round" if "round_ms" in r else ""
                print(f"bench-observe: {r['arm']}: {r['percent']:.4f} % of one CPU{more}, {r['rss_bytes'] / 1e6:.0f} MB resident", flush=True)
    sys.exit(judge(out, arms))


def judge(out, arms):
    share = {}
    for arm in dict.fromkeys(r["arm"] for r in out["runs"]):
        turns = [r["percent"] for r in out["runs"] if r["arm"] == arm]
        share[arm] = {"median": statistics.median(turns), "least": min(turns), "most": max(turns)}
    own = max((share[a]["median"] for a in arms if a.startswith("homenode")), default=None)
    peer = share.get("cadvisor least", {}).get("median")
    out["percent"], out["targets"] = share, []
    if own is not None:
        out["targets"].append({"name": "observing, % of one CPU", "value": own, "limit": LIMIT, "met": own <= LIMIT})
    if own is not None and peer is not None:
        out["targets"].append({"name": "observing, of cAdvisor's least", "value": own / peer, "limit": 1, "met": own < peer})
    if own is not None and "cadvisor default" in share:
        out["of_cadvisor_default"] = own / share["cadvisor default"]["median"]
    if "sending" in share:
        # Two turns, with each of the two once the first, make one figure.
        turns = [s["round_ms"] / w["round_ms"] for w, s in zip(*([r for r in out["runs"] if r["arm"] == a] for a in ("without a hub", "sending")))]
        each = [statistics.geometric_mean(turns[i:i + 2]) for i in range(0, len(turns), 2)]
        value = statistics.geometric_mean(turns)
        out["sending_of_without"] = {"mean": value, "turns": turns, "least": min(each), "most": max(each)}
        out["targets"].append({"name": f"observing and sending to a hub, of observing ({min(each):.2f} to {max(each):.2f})", "value": value, "limit": SENDING, "met": value <= SENDING})
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
