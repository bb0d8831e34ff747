#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests that the capabilities of deploy/systemd/homenode.service suffice, and what fails
# without each. It tries the agent's system calls as root with a bounding set, on a process of
# another user. Needs root, setpriv and python3; changes nothing but its own
# child and, where there is one, a cpuset cgroup that it makes and removes.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "test-capabilities: needs root" >&2; exit 2; }
command -v setpriv >/dev/null || { echo "test-capabilities: needs setpriv (util-linux)" >&2; exit 2; }
exec python3 - <<'PYTHON'
import ctypes, os, re, subprocess, sys

unit = open("deploy/systemd/homenode.service").read()
caps = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).split()
caps = [c.removeprefix("CAP_").lower() for c in caps]

PROBE = r'''
import ctypes, errno, os, platform, struct, sys
pid, what = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
NR = {"x86_64": {"move_pages": 279, "perf": 298, "bpf": 321}, "aarch64": {"move_pages": 239, "perf": 241, "bpf": 280}}[platform.machine()]
def call(nr, *a):
    r = libc.syscall(nr, *a)
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
def stack():
    for line in open(f"/proc/{pid}/maps"):
        if line.rstrip().endswith("[stack]"):
            return int(line.split("-")[1].split()[0], 16) - 4096
def move(flags, address):
    pages, nodes, status = (ctypes.c_void_p * 1)(address), (ctypes.c_int * 1)(0), (ctypes.c_int * 1)()
    call(NR["move_pages"], pid, 1, pages, nodes, status, flags)
def perf(pid_, cpu, flags=0):
    attr = bytearray(128)
    struct.pack_into("IIQQ", attr, 0, 1, 128, 0, 0)  # PERF_TYPE_SOFTWARE, cpu-clock: wherever there is perf
    os.close(call(NR["perf"], (ctypes.c_char * 128).from_buffer(attr), pid_, cpu, -1, flags))
def cpuset():  # made by the caller: homenode makes no cgroups
    open(sys.argv[4], "w").write("0")
def bpf():
    attr = bytearray(72)
    struct.pack_into("IIIII", attr, 0, 2, 4, 8, 1, 0)  # BPF_MAP_CREATE of an array
    os.close(call(NR["bpf"], 0, (ctypes.c_char * 72).from_buffer(attr), 72))
{"maps": lambda: open(f"/proc/{pid}/maps").read(1),
 "numa_maps": lambda: open(f"/proc/{pid}/numa_maps").read(1),
 "move_pages": lambda: move(2, int(sys.argv[3], 16)),
 "move_pages of shared pages": lambda: move(4, int(sys.argv[3], 16)),
 "sched_setaffinity": lambda: os.sched_setaffinity(pid, os.sched_getaffinity(pid)),
 "perf of a CPU": lambda: perf(-1, 0),
 "bpf map": bpf,
 "cpuset write": cpuset}[what]()
'''

# action → the capability that it needs; None: no capability, as root.
NEEDS = {"cpuset write": None, "sched_setaffinity": "sys_nice", "move_pages of shared pages": "sys_nice", "move_pages": "sys_ptrace",
         "maps": "sys_ptrace", "numa_maps": "sys_ptrace", "perf of a CPU": "perfmon", "bpf map": "bpf"}

# Capabilities that can stand in for another: dropped with it.
ALSO = {"maps": ["perfmon"], "numa_maps": ["perfmon"]}  # may_access_mm in kernel/fork.c, since 6.15

top = next((t for t in ("/sys/fs/cgroup/cpuset", "/sys/fs/cgroup") if os.path.exists(t + "/cgroup.procs") and os.path.exists(t + "/cpuset.cpus")
            or os.path.exists(t + "/cgroup.controllers")), None)
folder = top and top + "/homenode-capabilities"
if folder:
    os.mkdir(folder)
cpus = (folder or "/nonexistent") + "/cpuset.cpus"
child = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "60"])
try:
    import time
    time.sleep(0.3)
    address = next(int(l.split("-")[1].split()[0], 16) - 4096 for l in open(f"/proc/{child.pid}/maps") if l.rstrip().endswith("[stack]"))

    def attempt(what, have):
        bound = ",".join(["-all"] + ["+" + c for c in have])
        r = subprocess.run(["setpriv", "--bounding-set", bound, "--inh-caps", "-all", "--ambient-caps", "-all", "--no-new-privs", sys.executable, "-c", PROBE, str(child.pid), what, hex(address), cpus],
                           capture_output=True, text=True)
        return r.returncode == 0, (r.stderr.strip().splitlines() or [""])[-1]

    paranoid = open("/proc/sys/kernel/perf_event_paranoid").read().strip() if os.path.exists("/proc/sys/kernel/perf_event_paranoid") else "none"
    unprivileged_bpf = open("/proc/sys/kernel/unprivileged_bpf_disabled").read().strip() if os.path.exists("/proc/sys/kernel/unprivileged_bpf_disabled") else "none"
    print(f"kernel {os.uname().release}, perf_event_paranoid {paranoid}, unprivileged_bpf_disabled {unprivileged_bpf}; the unit has: {' '.join(caps)}")
    bad = compared = 0
    for what, need in NEEDS.items():
        everything, why = attempt(what, [c for c in ["sys_nice", "sys_ptrace", "perfmon", "bpf", "sys_admin", "dac_override"]])
        if not everything:
            print(f"skip  {what}: not here even with more ({why})")
            continue
        ok, why = attempt(what, caps)
        compared += 1
        if not ok:
            bad += 1
            print(f"BAD   {what}: the unit's capabilities do not suffice: {why}")
            continue
        if need is None:
            ok, why = attempt(what, [])
            bad += not ok
            print(f"{'ok   ' if ok else 'BAD  '} {what}: {'no capability is needed' if ok else why}")
            continue
        gone = [need] + ALSO.get(what, [])
        without, why = attempt(what, [c for c in caps if c not in gone])
        print(f"ok    {what}: {'works without CAP_' + need.upper() + ' too, as this kernel is set' if without else 'without ' + ' and '.join('CAP_' + g.upper() for g in gone) + ': ' + why}")
    sys.exit(1 if bad or compared == 0 else 0)
finally:
    child.kill()
    child.wait()
    if folder:
        os.rmdir(folder)
PYTHON
