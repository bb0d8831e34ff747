// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

const (
	mountV2     = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	mountHybrid = "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
		"35 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

func TestLayout(t *testing.T) {
	v2 := kerneltest.Tree(t, kerneltest.Files{"/proc/self/mountinfo": mountV2, "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory\n"})
	l, err := Find(v2)
	want := Hier{"/sys/fs/cgroup", true}
	if err != nil || l.Cpuset != want || l.CPU != want || l.Memory != want || l.Perf != want || l.CPUAcct != want {
		t.Errorf("v2: %+v, %v", l, err)
	}
	hybrid := kerneltest.Tree(t, kerneltest.Files{"/proc/self/mountinfo": mountHybrid, "/sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n"})
	l, err = Find(hybrid)
	if err != nil || l.Cpuset != (Hier{"/sys/fs/cgroup/cpuset", false}) || l.CPUAcct.V2 || l.CPU.Mount != "/sys/fs/cgroup/cpu,cpuacct" ||
		l.Memory.Present() || l.Perf != (Hier{"/sys/fs/cgroup/unified", true}) {
		t.Errorf("hybrid: %+v, %v", l, err)
	}
}

func TestLayoutWithoutCpuset(t *testing.T) {
	root := kerneltest.Tree(t, kerneltest.Files{"/proc/self/mountinfo": mountV2, "/sys/fs/cgroup/cgroup.controllers": "memory\n"})
	l, err := Find(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Discover(nil); !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "CONFIG_CPUSETS") {
		t.Errorf("got %v", err)
	}
}

func v2Tree(t *testing.T) Layout {
	const top = "/sys/fs/cgroup"
	root := kerneltest.Tree(t, kerneltest.Files{
		"/proc/self/mountinfo":                  mountV2,
		top + "/cgroup.controllers":             "cpuset cpu memory\n",
		top + "/cgroup.procs":                   "1\n",
		top + "/cpuset.cpus.effective":          "0-3\n",
		top + "/cpuset.mems.effective":          "0-1\n",
		top + "/demo/cgroup.procs":              "",
		top + "/demo/cpuset.cpus.effective":     "0-3\n",
		top + "/demo/cpuset.mems.effective":     "0-1\n",
		top + "/demo/a/cgroup.procs":            "10\n11\n",
		top + "/demo/a/cgroup.threads":          "10\n11\n12\n",
		top + "/demo/a/cgroup.events":           "populated 1\nfrozen 0\n",
		top + "/demo/b/cgroup.procs":            "",
		top + "/demo/b/cgroup.events":           "populated 0\n",
		top + "/demo/c/cgroup.procs":            "",
		top + "/demo/c/cgroup.threads":          "",
		top + "/demo/c/cgroup.events":           "populated 1\n",
		top + "/demo/c/sub/cgroup.procs":        "20\n",
		top + "/demo/c/sub/cgroup.threads":      "20\n21\n",
		top + "/demo/t/cgroup.type":             "domain threaded\n",
		top + "/demo/t/cgroup.procs":            "30\n",
		top + "/demo/t/w/cgroup.type":           "threaded\n",
		top + "/demo/t/w/cgroup.procs":          "30\n",
		top + "/x.slice/y.service/cgroup.procs": "40\n",
	})
	l, err := Find(root)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDiscover(t *testing.T) {
	l := v2Tree(t)
	for _, c := range []struct {
		roots []string
		want  []Cgroup
	}{
		{[]string{"/demo/*"}, []Cgroup{{"/demo/a", "none"}, {"/demo/c", "none"}, {"/demo/t", "none"}}},
		{[]string{"/demo/a", "/demo/[ab]", "/nothing"}, []Cgroup{{"/demo/a", "none"}}},
		{[]string{"/demo/t/*"}, nil},
		{nil, []Cgroup{{"/demo/a", "none"}, {"/demo/c/sub", "none"}, {"/demo/t", "none"}, {"/x.slice/y.service", "systemd"}}},
	} {
		got, err := l.Discover(c.roots)
		if err != nil || len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, %v; want %v", c.roots, got, err, c.want)
		}
	}
	for _, bad := range []string{"demo/*", "/", "/demo/["} {
		if _, err := l.Discover([]string{bad}); !errors.Is(err, unix.ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestIDsBelow(t *testing.T) {
	l := v2Tree(t)
	var buf unix.Buffer
	if tids, err := l.TIDs(nil, "/demo/c", &buf); err != nil || !reflect.DeepEqual(tids, []int{20, 21}) {
		t.Errorf("threads: %v, %v", tids, err)
	}
	if pids, err := l.PIDs(nil, "/demo/a", &buf); err != nil || len(pids) != 2 {
		t.Errorf("processes: %v, %v", pids, err)
	}
	if _, err := l.PIDs(nil, "/demo/zzz", &buf); !errors.Is(err, unix.ErrGone) {
		t.Errorf("gone: %v", err)
	}
}

// A cgroup without the controller has what the nearest ancestor has.
func TestEffectiveOfAncestor(t *testing.T) {
	var buf unix.Buffer
	l := v2Tree(t)
	for _, id := range []string{"/demo/c/sub", "/demo", "/"} {
		e, err := l.ReadEffective(id, &buf)
		if err != nil || e.CPUs.String() != "0-3" || e.Mems.String() != "0-1" {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
	}
	if _, err := l.ReadEffective("/zzz", &buf); !errors.Is(err, unix.ErrGone) {
		t.Errorf("gone: %v", err)
	}
}

func TestOwnerOf(t *testing.T) {
	for id, want := range map[string]string{
		"/demo/a": "none", "/": "none", "/system.slice/ssh.service": Systemd, "/user.slice/user-0.slice/session-1.scope": Systemd,
		"/kubepods.slice/kubepods-burstable.slice/x/cri-containerd-1a.scope": Kubelet, "/kubepods/besteffort/x": Kubelet,
		"/system.slice/docker-1a2b.scope": Docker, "/docker/1a2b": Docker, "/system.slice/cri-containerd-1.scope": Kubelet,
		"/machine.slice/machine-qemu\\x2d1.scope": Libvirt, "/machine.slice/libpod-1a.scope": Podman, "/machine/vm1.libvirt-qemu": Libvirt,
		"/dockers/a": "none", "/my.slicer": "none",
	} {
		if got := OwnerOf(id); got != want {
			t.Errorf("%s is owned by %s, want %s", id, got, want)
		}
	}
}

// A process below a shim belongs to its runtime, whatever the path is.
func TestOwnerByShim(t *testing.T) {
	const top = "/sys/fs/cgroup"
	stat := func(name string, parent string) string {
		return "9 (" + name + ") S " + parent + " 1 1 0 -1 4194304 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
	}
	shim := func(namespace string) string {
		return "/usr/bin/containerd-shim-runc-v2\x00-namespace\x00" + namespace + "\x00-id\x00c1\x00"
	}
	files := kerneltest.Files{
		"/proc/self/mountinfo": mountV2, top + "/cgroup.controllers": "cpuset cpu memory\n",
		"/proc/1/stat": stat("systemd", "0"), "/proc/7/stat": stat("a) S 1 (b", "1"),
		top + "/default/c1/cgroup.procs": "11\n", "/proc/11/stat": stat("homenode-load", "10"), // 11 ← sh ← shim
		"/proc/10/stat": stat("sh", "20"), "/proc/20/stat": stat("containerd-shim", "1"), "/proc/20/status": "Uid:\t0\t0\t0\t0\n", "/proc/20/cmdline": shim("default"),
		top + "/demo/byhand/cgroup.procs":      "7\n",
		top + "/demo/indocker/cgroup.procs":    "",
		top + "/demo/indocker/in/cgroup.procs": "30\n31\n", // 30 is gone
		"/proc/31/stat":                        stat("x", "21"), "/proc/21/stat": stat("containerd-shim", "1"), "/proc/21/status": "Uid:\t0\t0\t0\t0\n", "/proc/21/cmdline": shim("moby"),
		top + "/pods/a/cgroup.procs": "40\n", "/proc/40/stat": stat("x", "22"), "/proc/22/stat": stat("containerd-shim", "1"), "/proc/22/status": "Uid:\t0\t0\t0\t0\n", "/proc/22/cmdline": shim("k8s.io"),
		top + "/gone/cgroup.procs": "99\n", top + "/loop/cgroup.procs": "50\n", "/proc/50/stat": stat("x", "50"),
		top + "/empty/cgroup.procs": "", top + "/nocmd/cgroup.procs": "23\n", "/proc/23/stat": stat("containerd-shim", "1"), "/proc/23/status": "Uid:\t0\t0\t0\t0\n",
		// A user's process with the same name, and one that becomes root for the user.
		top + "/evil/cgroup.procs": "60\n", "/proc/60/stat": stat("x", "61"), "/proc/61/stat": stat("containerd-shim", "1"), "/proc/61/cmdline": shim("k8s.io"),
		"/proc/61/status": "Uid:\t1000\t1000\t1000\t1000\n", top + "/setuid/cgroup.procs": "62\n", "/proc/62/stat": stat("containerd-shim", "1"),
		"/proc/62/cmdline": shim("k8s.io"), "/proc/62/status": "Uid:\t1000\t0\t0\t0\n",
	}
	l, err := Find(kerneltest.Tree(t, files))
	if err != nil {
		t.Fatal(err)
	}
	var buf unix.Buffer
	for id, want := range map[string]string{
		"/default/c1": Containerd, "/demo/byhand": NoOwner, "/demo/indocker": Docker, "/pods/a": Kubelet, "/gone": NoOwner,
		"/loop": NoOwner, "/empty": NoOwner, "/none": NoOwner, "/nocmd": Containerd, "/evil": NoOwner, "/setuid": NoOwner, "/system.slice/x.service": Systemd,
	} {
		if got := l.Owner(id, &buf); got != want {
			t.Errorf("%s is owned by %s, want %s", id, got, want)
		}
	}
}

func TestDecodeFiles(t *testing.T) {
	if d, err := ParseCPUStat([]byte("usage_usec 1500000\nuser_usec 1\n")); err != nil || d != 1500*time.Millisecond {
		t.Errorf("cpu.stat: %v, %v", d, err)
	}
	if by, err := ParseCPUAcctPerCPU([]byte("71920912529 93952251650 \n")); err != nil || len(by) != 2 || by[1] != 93952251650 {
		t.Errorf("usage_percpu: %v, %v", by, err)
	}
	for in, want := range map[string]unit.Opt[float64]{"max 100000\n": unit.None[float64](), "250000 100000\n": unit.Some(2.5)} {
		if q, err := ParseCPUMax([]byte(in)); err != nil || q != want {
			t.Errorf("cpu.max %q: %v, %v", in, q, err)
		}
	}
	if q, err := ParseCFSQuota([]byte("-1\n"), []byte("100000\n")); err != nil || q.Known() {
		t.Errorf("cfs: %v, %v", q, err)
	}
	if q, err := ParseCFSQuota([]byte("50000\n"), []byte("100000\n")); err != nil || q.Or(0) != 0.5 {
		t.Errorf("cfs: %v, %v", q, err)
	}
	v2, err := ParseNumaStat([]byte("anon N0=1048576 N1=0\nfile N0=4096 N1=8192\nanon_thp N0=7 N1=7\n"), true, 4096)
	if err != nil || v2.Anon[0] != unit.MiB || v2.File[1] != 8*unit.KiB {
		t.Errorf("v2 numa_stat: %+v, %v", v2, err)
	}
	v1 := "total=9 N0=9\nfile=64 N0=64\nanon=374 N0=374\nhierarchical_file=14406 N0=14406\nhierarchical_anon=1935 N0=1935\n"
	got, err := ParseNumaStat([]byte(v1), false, 4096)
	if err != nil || got.Anon[0] != 1935*4096 || got.File[0] != 14406*4096 {
		t.Errorf("v1 numa_stat: %+v, %v", got, err)
	}
	kinds, err := ParseNumaKinds([]byte("anon N0=1048576 N1=0\nshmem N0=4096 N1=8192\nanon_thp N0=x\n"))
	if err != nil || kinds.Shmem[1] != 8192 || kinds.File != nil {
		t.Errorf("v2 kinds: %+v, %v", kinds, err)
	}
	huge, err := ParseHugetlbNumaStat([]byte("total=25165824 N0=0 N1=25165824\n"))
	if err != nil || huge[1] != 24*unit.MiB || len(huge) != 2 {
		t.Errorf("hugetlb numa_stat: %v, %v", huge, err)
	}
	for _, bad := range []string{"", "total", "total=1 N0=x\n", "N0=1\n"} {
		if by, err := ParseHugetlbNumaStat([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || by != nil {
			t.Errorf("hugetlb numa_stat %q: %v, %v", bad, by, err)
		}
	}
	for size, want := range map[unit.Bytes]string{64 * unit.KiB: "64KB", 2 * unit.MiB: "2MB", 16 * unit.GiB: "16GB"} {
		if got := HugetlbNumaStat(size); got != "hugetlb."+want+".numa_stat" {
			t.Errorf("file of %v: %s", size, got)
		}
	}
	old, err := ParseNumaStat([]byte("file=64 N0=64\nanon=374 N0=374\n"), false, 4096)
	if err != nil || old.Anon[0] != 374*4096 {
		t.Errorf("old v1 numa_stat: %+v, %v", old, err)
	}
}

func TestDecodeMemoryLimit(t *testing.T) {
	for in, want := range map[string]unit.Opt[unit.Bytes]{
		"max\n": unit.None[unit.Bytes](), "9223372036854771712\n": unit.None[unit.Bytes](), "536870912\n": unit.Some(512 * unit.MiB), "0\n": unit.Some(unit.Bytes(0)),
	} {
		if got, err := ParseMemoryLimit([]byte(in)); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	if _, err := ParseMemoryLimit([]byte("-1\n")); !errors.Is(err, unix.ErrMalformed) {
		t.Errorf("-1: %v", err)
	}
	if n, err := ParseOOMKills([]byte("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")); err != nil || n != 3 {
		t.Errorf("oom_control: %d, %v", n, err)
	}
	if n, err := ParseReclaimed([]byte("anon 1\npgsteal_kswapd 5\npgsteal 7\n")); err != nil || n != 7 {
		t.Errorf("memory.stat: %d, %v", n, err)
	}
}

func FuzzParsers(f *testing.F) {
	for _, seed := range []string{"usage_usec 1500000\n", "71920912529 93952251650\n", "max 100000\n", "2 1", "anon N0=1\nfile N0=2\n", "hierarchical_anon=1 N0=1\nhierarchical_file=1 N0=1\n", "populated 1\n", "populated 1\nfrozen 1\n", "total=4 N0=0 N1=4\n", "nr_periods 3\nnr_throttled 1\n", "some avg10=0.00 total=12\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, ParseCPUStat, data)
		check(t, ParseThrottling, data)
		check(t, ParseCPUPressure, data)
		check(t, ParseCPUAcctUsage, data)
		check(t, ParseCPUAcctPerCPU, data)
		check(t, ParseCPUMax, data)
		check(t, ParsePopulated, data)
		check(t, ParseFrozen, data)
		check(t, func(d []byte) (NumaStat, error) { return ParseNumaStat(d, true, 4096) }, data)
		check(t, func(d []byte) (NumaStat, error) { return ParseNumaStat(d, false, 4096) }, data)
		check(t, ParseNumaKinds, data)
		check(t, ParseHugetlbNumaStat, data)
		check(t, ParseMemoryLimit, data)
		check(t, ParseMemoryUsage, data)
		check(t, ParseOOMKills, data)
		check(t, ParseReclaimed, data)
		check(t, ParseCleanCache, data)
		check(t, func(d []byte) (unit.Opt[float64], error) { return ParseCFSQuota(d, d) }, data)
	})
}

func check[T any](t *testing.T, parse func([]byte) (T, error), data []byte) {
	t.Helper()
	v, err := parse(data)
	if err != nil && (!errors.Is(err, unix.ErrMalformed) || !reflect.ValueOf(&v).Elem().IsZero()) {
		t.Fatalf("%q: %v, %v", data, v, err)
	}
}
