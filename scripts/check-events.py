#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every event of internal/event/tables with its vendor's published list.

Lists are clones, or parts of them, that are there already; nothing is fetched:
  --perfmon DIR     github.com/intel/perfmon (mapfile.csv, SKX/events/…)
  --arm DIR         github.com/ARM-software/data (cpus.json, pmu/…)
  --linux DIR       a Linux tree, or its tools/perf/pmu-events alone: AMD's lists, POWER's
  --linux-version   what that tree is, for the fixture
  --libpfm LIB      libpfm.so.4, as a second opinion on x86
  --libpfm-src DIR  its sources, for Arm and POWER
  --only NAMES      of these tables alone, apart by commas
  --write           writes what the lists say to internal/event/testdata/vendor.json,
                    which `go test ./internal/event` holds the tables to; what it has
                    of lists that are not given is kept

A difference to a vendor's list fails. One to libpfm4 fails, too, but for those in
KNOWN, which say why libpfm4 is not followed.
"""
import argparse, ctypes, glob, json, os, re, sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLES = os.path.join(HERE, "internal", "event", "tables")
FIXTURE = os.path.join(HERE, "internal", "event", "testdata", "vendor.json")
INTEL = {"hsx": "HSX", "bdx": "BDX", "skx": "SKX", "clx": "CLX", "icx": "ICX", "spr": "SPR", "emr": "EMR", "gnr": "GNR", "srf": "SRF", "cwf": "CWF"}
PFM = {"amd-zen1": "amd64_fam17h_zen1", "amd-zen2": "amd64_fam17h_zen2", "amd-zen3": "amd64_fam19h_zen3", "amd-zen4": "amd64_fam19h_zen4", "amd-zen5": "amd64_fam1ah_zen5"}

# libpfm4's names of AMD's events. For Zen 5, libpfm4 has the names of 0x72 and 0x165
# exchanged, as their own unit masks show, so each is looked up by the other's name.
L2PF = {"amd-zen1": "ANY", "amd-zen2": "ANY", "amd-zen3": "L2_HW_PREFETCHER:L1_HW_PREFETCHER", "amd-zen5": "L2_HW_PF",
        "amd-zen4": ":".join("L2_STREAM L2_NEXT_LINE L2_UP_DOWN L2_BURST L2_STRIDE L1_STREAM L1_STRIDE L1_REGION".split())}
FILL = {"mem_io_local": "MEM_IO_LCL", "mem_io_remote": "MEM_IO_RMT", "ext_cache_local": "EXT_CACHE_LCL", "ext_cache_remote": "EXT_CACHE_RMT",
        "dram_io_near": "DRAM_IO_NEAR", "dram_io_far": "DRAM_IO_FAR", "near_cache": "NEAR_CACHE_NEAR_FAR", "far_cache": "FAR_CACHE_NEAR_FAR",
        "ls_mabresp_lcl_dram": "LS_MABRESP_LCL_DRAM", "ls_mabresp_rmt_dram": "LS_MABRESP_RMT_DRAM"}

ANSWERS = 0x7fff0000  # who answered, of OFFCORE_RSP

KNOWN = {
    ("amd-zen2", "l2_pf_miss_l2_hit_l3"): "libpfm4 has the unit mask of the L2's own prefetchers alone (0x1f), Linux's list that of all",
    ("amd-zen2", "l2_pf_miss_l2_l3"): "the same",
    ("amd-zen1", "l2_pf_miss_l2_hit_l3"): "libpfm4 has only the unit masks that it names (0x3f), Linux's list all (0xff)",
    ("amd-zen1", "l2_pf_miss_l2_l3"): "the same",
    ("intel-spr", "MEM_TRANS_RETIRED.STORE_SAMPLE"): "libpfm4 4.13 has unit mask 0x03, Intel's list and the kernel's mem-stores 0x02",
}


def num(x):
    return int(str(x or 0).split(",")[0], 0)


def names(e):
    return [e["name"]] if "name" in e else e.get("names", [])


def code(e):
    return {k: num(e.get(k)) for k in ("event", "umask", "cmask", "config1")} | {"inv": int(e.get("inv", 0)), "edge": int(e.get("edge", 0))}


def offcore(e):
    """The value of OFFCORE_RSP; other registers (of latencies) are no part of a code."""
    return num(e.get("MSRValue")) if str(e.get("MSRIndex", "")).lower().startswith("0x1a6") else 0


def controller_code(e):
    """What the terms of a controller's event say; {} where sysfs names it."""
    return {k: num(v) for k, v in (t.split("=") for t in e["terms"].split(","))} if e.get("terms") else {}


def used(table):
    """The table's events, each once: (names, code, the one whose answers are left out)."""
    seen = []
    for f in table["fields"]:
        for c in f.get("counts", []):
            for e in c["sum"] + [c[k] for k in ("leader",) if k in c]:
                one = names(e), code(e), e.get("without")
                if names(e) and one not in seen:
                    seen.append(one)
    return seen


def perfmon(root, short):
    """Intel's list: entries by name, its name and version, the CPUs that it is for."""
    rows = [l.rstrip("\n").split(",") for l in open(os.path.join(root, "mapfile.csv"))]
    mine = [r for r in rows if len(r) > 3 and r[2].startswith("/%s/" % short) and r[3] == "core"]
    data = json.load(open(os.path.join(root, mine[0][2].lstrip("/"))))
    head = data["Header"]
    if not all(r[1].upper().lstrip("V") == head["Version"].upper().lstrip("V") for r in mine):
        sys.exit("mapfile.csv and %s disagree about the version" % mine[0][2])
    events = {}
    for path in glob.glob(os.path.join(root, short, "events", "*_uncore*.json")):
        for e in json.load(open(path))["Events"]:
            if e.get("Unit", "").upper() == "IMC":
                events[e["EventName"]] = {"event": num(e["EventCode"]), "umask": num(e["UMask"]) | num(e.get("UMaskExt")) << 8}
    for e in data["Events"]:
        events[e["EventName"]] = {"event": num(e["EventCode"]), "umask": num(e["UMask"]), "cmask": num(e["CounterMask"]), "inv": num(e["Invert"]), "edge": num(e["EdgeDetect"]), "config1": offcore(e)}
        if num(e.get("Deprecated")):
            events[e["EventName"]]["deprecated"] = True
    return events, "intel/perfmon " + mine[0][2].lstrip("/"), "%s, %s" % (head["Version"], head["DatePublished"]), [r[0] for r in mine]


def linux(root, arch, name, version):
    base = os.path.join(root, "tools", "perf", "pmu-events") if os.path.isdir(os.path.join(root, "tools")) else root
    rows = [l.rstrip("\n").split(",") for l in open(os.path.join(base, "arch", arch, "mapfile.csv"))]
    spelled = str.lower if arch == "x86" else str
    events = {}
    for path in glob.glob(os.path.join(base, "arch", arch, name, "*.json")):
        for e in json.load(open(path)):
            if "EventName" in e and e.get("Unit") in (None, "DFPMC", "UMCPMC"):  # of cores, and of AMD's memory controllers
                events[spelled(e["EventName"])] = {"event": num(e["EventCode"]), "umask": num(e.get("UMask")), "cmask": num(e.get("CounterMask")), "inv": num(e.get("Invert")), "edge": num(e.get("EdgeDetect")), "rdwrmask": num(e.get("RdWrMask"))}
    return events, "Linux tools/perf/pmu-events/arch/%s/%s" % (arch, name), version, [r[0] for r in rows if len(r) > 3 and r[2] == name]


def arm(root, core):
    path = "pmu/neoverse-%s.json" % core
    data = json.load(open(os.path.join(root, path)))
    events = {e["name"]: {"event": e["code"]} for e in data["events"]}
    ids = [c["cpuid"] for c in json.load(open(os.path.join(root, "cpus.json")))["cpus"] if c.get("name") == "Neoverse " + core.upper()]
    if ids != [data["cpuid"]]:
        sys.exit("cpus.json and %s disagree: %s, %s" % (path, ids, data["cpuid"]))
    return events, "ARM-software/data " + path, data["timestamp"], ids


class Libpfm:
    """A second opinion: pfm_get_event_encoding of PMU::EVENT:UMASK."""
    BITS = 0xffff | 1 << 18 | 1 << 23 | 0xff << 24 | 0xf << 32

    def __init__(self, path):
        os.environ["LIBPFM_ENCODE_INACTIVE"] = "1"
        self.lib = ctypes.CDLL(path)
        if self.lib.pfm_initialize() != 0:
            sys.exit("libpfm4 does not start")

    def encode(self, text):
        codes, n = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_int(0)
        err = self.lib.pfm_get_event_encoding(text.encode(), 0, None, None, ctypes.byref(codes), ctypes.byref(n))
        return None if err or n.value < 1 else codes[0] & self.BITS

    def name(self, table, event):
        if table.startswith("intel-"):
            base, _, mask = event.partition(".")
            mask = re.sub(r"_GT_4$", "", mask)
            return "%s::%s:%s" % ({"hsx": "hsw_ep", "bdx": "bdw_ep"}.get(table[6:], table[6:]), base, mask) if mask else None
        base, _, mask = event.partition(".")
        pmu = PFM[table]
        if base in ("l2_pf_miss_l2_hit_l3", "l2_pf_miss_l2_l3"):
            miss = "L2_FILL_RESPONSE_SRC" if table == "amd-zen5" else "L2_PREFETCH_MISS_L3"
            return "%s::%s:%s" % (pmu, "L2_PREFETCH_HIT_L3" if base.endswith("hit_l3") else miss, L2PF[table])
        one = {"l2_cache_req_stat": ("CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS", "LS_RD_BLK_C:IC_FILL_MISS"), "ex_no_retire": ("CYCLES_NO_RETIRE", "NOT_COMPLETE_MISSING_LOAD"),
               "ls_refills_from_sys": ("DATA_CACHE_REFILLS_FROM_SYSTEM", FILL.get(mask)), "ls_dmnd_fills_from_sys": ("DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM", FILL.get(mask)),
               "ls_any_fills_from_sys": ("ANY_DATA_CACHE_FILLS_FROM_SYSTEM", FILL.get(mask)), "l2_fill_rsp_src": ("L2_PREFETCH_MISS_L3", FILL.get(mask))}[base]
        if table == "amd-zen5" and one[1] in ("NEAR_CACHE_NEAR_FAR", "FAR_CACHE_NEAR_FAR"):
            one = one[0], {"N": "NEAR_FAR_CACHE_NEAR", "F": "NEAR_FAR_CACHE_FAR"}[one[1][0]]
        return "%s::%s:%s" % (pmu, *one)


def pfm_arm(src, core):
    text = open(os.path.join(src, "lib", "events", "arm_neoverse_%s_events.h" % core)).read()
    return {m[1]: int(m[2], 16) for m in re.finditer(r'\.name\s*=\s*"(\w+)".*?\.code\s*=\s*(0x\w+)', text, re.S)}


def pfm_power(src, table, name, code):
    """POWER10's names without _DSRC are of a counter; the list's code leaves it open."""
    text = open(os.path.join(src, "lib", "events", table + "_events.h")).read()
    found = {m[1]: int(m[2], 16) for m in re.finditer(r'\.pme_name\s*=\s*"(\w+)".*?\.pme_code\s*=\s*(0x\w+)', text, re.S)}
    got = found.get(name.removesuffix("_DSRC"))
    return got & ~(0xf << 16) if got is not None and code >> 16 & 0xf == 0 else got


def t_in_pfm(src, table):
    return os.path.exists(os.path.join(src, "lib", "events", "arm_neoverse_%s_events.h" % table.removeprefix("arm-neoverse-")))


def config(c):
    get = lambda k: c.get(k, 0)
    return c["event"] & 0xff | get("umask") << 8 | get("edge") << 18 | get("inv") << 23 | get("cmask") << 24 | c["event"] >> 8 << 32


def vendor_list(args, name):
    kind, _, core = name.partition("-")
    if kind == "intel" and args.perfmon:
        return perfmon(args.perfmon, INTEL[core])
    if kind == "amd" and args.linux:
        return linux(args.linux, "x86", "amd" + core, args.linux_version)
    if kind.startswith("power") and args.linux:
        return linux(args.linux, "powerpc", name, args.linux_version)
    if core.startswith("neoverse-") and args.arm:
        return arm(args.arm, core.removeprefix("neoverse-"))
    return None


class Check:
    def __init__(self, args):
        self.args, self.wrong, self.compared, self.pfm_compared, self.pfm_unknown = args, [], 0, 0, []
        self.pfm = Libpfm(args.libpfm) if args.libpfm else None

    def table(self, t):
        """Compares one table; returns its part of the fixture."""
        found = vendor_list(self.args, t["name"])
        facts = {}
        for ns, c, without in used(t):
            if found:
                self.vendor(t["name"], ns, c, without, found[0], facts)
            for n in ns:
                self.second(t["name"], n, found[0].get(n) if found else (c if len(ns) == 1 else None))
        if not found:
            return None
        self.controllers(t, found[0], facts)
        facts = {k: {f: v for f, v in facts[k].items() if v} for k in sorted(facts)}
        return {"table": t["name"], "list": found[1], "version": found[2], "cpus": found[3], "events": facts}

    def controllers(self, t, events, facts):
        """Compares the events of memory controllers."""
        for one in t.get("controllers", []):
            for e in one.get("reads", []) + one.get("writes", []) + one.get("all", []):
                if not controller_code(e):
                    continue
                if e["name"] not in events:
                    self.wrong.append("%s: %s: not in the vendor's list" % (t["name"], e["name"]))
                    continue
                self.compared += 1
                facts[e["name"]] = events[e["name"]]
                want = {k: v for k, v in events[e["name"]].items() if v}
                if controller_code(e) != want:
                    self.wrong.append("%s: %s: the table has %s, the list %s" % (t["name"], e["name"], e["terms"], want))

    def vendor(self, table, ns, c, without, events, facts):
        together = {"event": None, "umask": 0, "cmask": 0, "inv": 0, "edge": 0, "config1": 0}
        for n in ns + [without] * bool(without):
            e = events.get(n)
            if e is None or e.get("deprecated"):
                self.wrong.append("%s: %s: %s" % (table, n, "not in the vendor's list" if e is None else "deprecated"))
                return
            facts[n] = e
            if n == without:
                together["config1"] &= ~(e["config1"] & ANSWERS)
                continue
            together = {k: (together[k] or 0) | e.get(k, 0) for k in together} | {"event": e["event"]}
        self.compared += 1
        if together != c:
            self.wrong.append("%s: %s: the table has %s, the list %s" % (table, " | ".join(ns), c, together))

    def second(self, table, name, c):
        if c is None:
            return
        if table.startswith("arm-"):
            if self.args.libpfm_src and t_in_pfm(self.args.libpfm_src, table):
                got = pfm_arm(self.args.libpfm_src, table.removeprefix("arm-neoverse-")).get(name)
                self.judge(table, name, c["event"], got)
        elif table.startswith("power"):
            if self.args.libpfm_src:
                self.judge(table, name, c["event"], pfm_power(self.args.libpfm_src, table, name, c["event"]))
        elif self.pfm and table != "lab":
            text = self.pfm.name(table, name)
            self.judge(table, name, config(c), self.pfm.encode(text) if text else None)

    def judge(self, table, name, want, got):
        if got is None:
            self.pfm_unknown.append("%s %s" % (table, name))
            return
        self.pfm_compared += 1
        why = KNOWN.get((table, name))
        if got != want and why:
            print("known: %s: %s: %#x, libpfm4 %#x: %s" % (table, name, want, got, why))
        elif got != want:
            self.wrong.append("%s: %s: the list has %#x, libpfm4 %#x" % (table, name, want, got))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for o in ("--perfmon", "--arm", "--linux", "--libpfm", "--libpfm-src"):
        p.add_argument(o)
    p.add_argument("--linux-version", default="unknown")
    p.add_argument("--only", default="")
    p.add_argument("--write", action="store_true")
    args = p.parse_args()
    check, lists = Check(args), []
    for path in sorted(glob.glob(os.path.join(TABLES, "*.json"))):
        name = os.path.basename(path).removesuffix(".json")
        part = check.table(json.load(open(path))) if name in args.only.split(",") or not args.only else None
        if part:
            lists.append(part)
    for w in check.wrong:
        print("WRONG", w)
    print("%d events compared with %d vendors' lists, %d with libpfm4; libpfm4 does not know %d: %s" % (check.compared, len(lists), check.pfm_compared, len(check.pfm_unknown), ", ".join(check.pfm_unknown)))
    if check.compared + check.pfm_compared == 0:
        sys.exit("nothing was compared: name a list")
    if args.write:
        given = {l["table"] for l in lists}
        lists = sorted([l for l in json.load(open(FIXTURE)) if l["table"] not in given] + lists, key=lambda l: l["table"])
        os.makedirs(os.path.dirname(FIXTURE), exist_ok=True)
        with open(FIXTURE, "w") as f:
            f.write("[\n" + ",\n".join(one(l) for l in lists) + "\n]\n")
    sys.exit(1 if check.wrong else 0)


def one(l):
    head = ",\n  ".join('"%s": %s' % (k, json.dumps(l[k])) for k in ("table", "list", "version", "cpus"))
    events = ",\n    ".join("%s: %s" % (json.dumps(n), json.dumps(e)) for n, e in l["events"].items())
    return " {" + head + ',\n  "events": {\n    ' + events + "}}"


main()
