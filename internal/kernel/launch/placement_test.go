// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func nodes(text string) set.NodeSet { s, _ := set.ParseNodes(text); return s }
func cpus(text string) set.CPUSet   { s, _ := set.ParseCPUs(text); return s }

// threeNodes has a node without CPUs, and one without memory.
func threeNodes() machine.Machine {
	some := func(b unit.Bytes) unit.Opt[unit.Bytes] { return unit.Some(b) }
	return machine.Machine{Nodes: []machine.Node{
		{ID: 0, CPUs: cpus("0-1"), Memory: some(unit.GiB)},
		{ID: 1, CPUs: cpus("2-3"), Memory: some(unit.GiB)},
		{ID: 4, Memory: some(unit.GiB)},
		{ID: 5, CPUs: cpus("4"), Memory: some(0)},
	}}
}

func TestDecisionResolve(t *testing.T) {
	all := Limits{CPUs: cpus("0-4"), Mems: nodes("0-1,4-5")}
	for _, c := range []struct {
		name string
		q    Request
		l    Limits
		want Placement
		err  string
	}{
		{name: "nodes alone mean bind", q: Request{Nodes: nodes("1")}, want: Placement{Policy: Bind, Nodes: nodes("1"), CPUs: cpus("2-3")}},
		{name: "all CPUs", q: Request{Nodes: nodes("1"), AllCPUs: true}, want: Placement{Policy: Bind, Nodes: nodes("1")}},
		{name: "own CPUs", q: Request{Nodes: nodes("1"), CPUs: cpus("0")}, want: Placement{Policy: Bind, Nodes: nodes("1"), CPUs: cpus("0")}},
		{name: "no CPUs on the node", q: Request{Policy: Bind, Nodes: nodes("4")}, want: Placement{Policy: Bind, Nodes: nodes("4")}},
		{name: "some CPUs of the node", q: Request{Nodes: nodes("0-1")}, l: Limits{CPUs: cpus("1-2"), Mems: all.Mems}, want: Placement{Policy: Bind, Nodes: nodes("0-1"), CPUs: cpus("1-2")}},
		{name: "preferred", q: Request{Policy: Preferred, Nodes: nodes("0")}, want: Placement{Policy: Preferred, Nodes: nodes("0"), CPUs: cpus("0-1")}},
		{name: "interleave keeps CPUs", q: Request{Policy: Interleave, Nodes: nodes("0-1")}, want: Placement{Policy: Interleave, Nodes: nodes("0-1")}},
		{name: "local is of CPUs", q: Request{Policy: Local, Nodes: nodes("1")}, want: Placement{Policy: Local, CPUs: cpus("2-3")}},
		{name: "local alone", q: Request{Policy: Local}, want: Placement{Policy: Local}},
		{name: "CPUs alone", q: Request{CPUs: cpus("3")}, want: Placement{CPUs: cpus("3")}},
		{name: "local without memory", q: Request{Policy: Local, Nodes: nodes("5")}, want: Placement{Policy: Local, CPUs: cpus("4")}},

		{name: "nothing", err: "nothing to place"},
		{name: "no nodes", q: Request{Policy: Interleave}, err: "policy interleave needs --nodes"},
		{name: "two preferred", q: Request{Policy: Preferred, Nodes: nodes("0-1")}, err: "preferred-many takes several"},
		{name: "no such node", q: Request{Nodes: nodes("1-3")}, err: "use nodes 2-3: no such node: this machine has nodes 0-1,4-5"},
		{name: "no memory", q: Request{Nodes: nodes("5")}, err: "memory of node 5: it has none"},
		{name: "local without CPUs", q: Request{Policy: Local, Nodes: nodes("4")}, err: "run on node 4: it has no CPUs"},
		{name: "cpuset", q: Request{Nodes: nodes("0-1")}, l: Limits{CPUs: all.CPUs, Mems: nodes("0")}, err: "memory of node 1: the cpuset of this process allows node 0 only"},
		{name: "no CPU left", q: Request{Nodes: nodes("1")}, l: Limits{CPUs: cpus("0"), Mems: all.Mems}, err: "give --cpus all"},
		{name: "no such CPU", q: Request{CPUs: cpus("0,9")}, err: "CPUs 9: they do not exist or are offline"},
		{name: "CPU of others", q: Request{CPUs: cpus("0,3")}, l: Limits{CPUs: cpus("0-1"), Mems: all.Mems}, err: "CPUs 3: this process may use 0-1 only"},
	} {
		if c.l == (Limits{}) {
			c.l = all
		}
		got, err := Resolve(c.q, threeNodes(), c.l)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestDecisionNumactl(t *testing.T) {
	for _, c := range []struct {
		p    Placement
		want string
	}{
		{Placement{Policy: Bind, Nodes: nodes("0-1"), CPUs: cpus("0-3")}, "numactl --membind=0-1 --physcpubind=0-3 -- a b"},
		{Placement{Policy: Local}, "numactl --localalloc -- a b"},
		{Placement{Policy: PreferredMany, Nodes: nodes("0,2")}, "numactl --preferred-many=0,2 -- a b"},
		{Placement{Policy: WeightedInterleave, Nodes: nodes("0,2")}, "numactl --weighted-interleave=0,2 -- a b"},
		{Placement{CPUs: cpus("1")}, "numactl --physcpubind=1 -- a b"},
	} {
		if got := strings.Join(c.p.Numactl([]string{"a", "b"}), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestDecisionRoom(t *testing.T) {
	room := func(node int, total, free, cache unit.Bytes) Room {
		return Room{node, unit.Some(total), unit.Some(free), unit.Some(cache)}
	}
	rooms := []Room{room(0, unit.GiB, 100*unit.MiB, 100*unit.MiB), room(1, unit.GiB, 500*unit.MiB, 0)}
	bind := Placement{Policy: Bind, Nodes: nodes("0-1")}
	spread := Placement{Policy: Interleave, Nodes: nodes("0-1")}
	for _, c := range []struct {
		p     Placement
		needs unit.Bytes
		want  string
	}{
		{bind, 700 * unit.MiB, ""},
		{bind, 701 * unit.MiB, "place 701 MiB by bind on nodes 0-1: 1 MiB are missing: node 0 has room for 200 MiB (100 MiB free, 100 MiB of page cache), node 1"},
		{spread, 400 * unit.MiB, ""},
		{spread, 500 * unit.MiB, "50 MiB are missing"},
	} {
		if err := Fits(c.p, rooms, c.needs); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of %v: %v, want %q", c.p.Policy, c.needs, err, c.want)
		}
	}
	if err := Fits(bind, []Room{{Node: 0}}, 1); err == nil {
		t.Error("unknown room was enough")
	}
	tight := []Room{room(0, unit.GiB, 63*unit.MiB, 0), room(1, 100*unit.GiB, 900*unit.MiB, 0), room(2, unit.GiB, 65*unit.MiB, 0)}
	if w := Warnings(bind, tight); len(w) != 2 || !strings.Contains(w[0], "node 0 has 63 MiB free, and 0 B of page cache that could go: a program that needs more is killed") {
		t.Errorf("%q", w)
	}
	if w := Warnings(Placement{Policy: Local}, tight); len(w) != 0 {
		t.Errorf("%q", w)
	}
}

// What a cgroup does not allow is refused whatever the nodes have, and before it is
// made.
func TestDecisionRoomOfCgroup(t *testing.T) {
	root := kerneltest.Tree(t, kerneltest.Files{
		"/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 9000000 kB\nNode 0 MemFree: 9000000 kB\n",
		"/proc/self/cgroup":                      "0::/a/b\n",
		"/proc/self/mountinfo":                   "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/a/memory.max":            "104857600\n",
		"/sys/fs/cgroup/a/memory.current":        "41943040\n",
	})
	limit, err := cgroup.ReadMemoryRoom(root)
	if err != nil || Allowed(limit, 60*unit.MiB) != nil || Allowed(unit.None[cgroup.MemoryRoom](), unit.PiB) != nil {
		t.Errorf("%v, %v", limit, err)
	}
	want := "4 MiB are missing: cgroup /a allows 60 MiB more (memory.max 100 MiB, 40 MiB used"
	if err := Allowed(limit, 64*unit.MiB); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	for _, policy := range []Policy{Bind, Interleave, Local} {
		q := SegmentRequest{Policy: policy, Nodes: nodes("0"), Touch: true}
		res := SegmentResult{Bytes: 65 * unit.MiB, Present: unit.Some(unit.MiB)}
		if err := fitsTouched(root, q, &res); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", policy, err, want)
		}
	}
}

func TestDecodeRoomAndLimits(t *testing.T) {
	root := kerneltest.Tree(t, kerneltest.Files{
		"/sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 1000 kB\nNode 1 MemFree: 100 kB\nNode 1 FilePages: 300 kB\nNode 1 Shmem: 50 kB\nNode 1 Dirty: 10 kB\n",
		"/proc/self/status":                      "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n",
	})
	rooms, err := ReadRoom(root, nodes("1"))
	if err != nil || len(rooms) != 1 || rooms[0] != (Room{1, unit.Some(1000 * unit.KiB), unit.Some(100 * unit.KiB), unit.Some(240 * unit.KiB)}) {
		t.Errorf("%+v, %v", rooms, err)
	}
	if _, err := ReadRoom(root, nodes("0")); err == nil {
		t.Error("a node that is not there has room")
	}
	if l, err := ReadLimits(root); err != nil || l != (Limits{cpus("0-1"), nodes("0")}) {
		t.Errorf("%+v, %v", l, err)
	}
}

// fakeThread behaves as the kernel does, and records it.
type fakeThread struct {
	cpus  set.CPUSet
	mode  int
	nodes set.NodeSet
	fail  map[string]error
	calls []string
}

func (f *fakeThread) affinity() (set.CPUSet, error) { return f.cpus, nil }
func (f *fakeThread) setAffinity(c set.CPUSet) error {
	f.calls = append(f.calls, "cpus "+c.String())
	if f.fail["cpus"] == nil {
		f.cpus = c
	}
	return f.fail["cpus"]
}
func (f *fakeThread) policy() (int, set.NodeSet, error) { return f.mode, f.nodes, nil }
func (f *fakeThread) setPolicy(mode int, n set.NodeSet) error {
	f.calls = append(f.calls, "policy "+n.String())
	if f.fail["policy"] == nil {
		f.mode, f.nodes = mode, n
	}
	return f.fail["policy"]
}

func TestDecisionApply(t *testing.T) {
	fresh := func() *fakeThread { return &fakeThread{cpus: cpus("0-7"), fail: map[string]error{}} }
	f := fresh()
	p := Placement{Policy: Interleave, Nodes: nodes("0-1"), CPUs: cpus("2-3")}
	restore, err := apply(f, p)
	if err != nil || f.cpus != p.CPUs || f.mode != 3 || f.nodes != p.Nodes {
		t.Errorf("%+v, %v", f, err)
	}
	if err := restore(); err != nil || f.cpus != cpus("0-7") || f.mode != 0 || !f.nodes.IsEmpty() {
		t.Errorf("restored: %+v, %v", f, err)
	}
	f = fresh()
	f.fail["policy"] = sys.EINVAL
	_, err = apply(f, Placement{Policy: WeightedInterleave, Nodes: nodes("0"), CPUs: cpus("1")})
	if err == nil || !strings.Contains(err.Error(), "does not have it: Linux has it since 6.9") || strings.Contains(err.Error(), "\n") || f.cpus != cpus("0-7") {
		t.Errorf("%+v, %v", f, err)
	}
	for errno, want := range map[error]string{sys.EPERM: "seccomp", sys.ENOSYS: "built without NUMA", sys.ENOMEM: "cannot allocate"} {
		f = fresh()
		f.fail["policy"] = errno
		if _, err := apply(f, p); !errors.Is(err, errno) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", errno, err, want)
		}
	}
	f = fresh()
	f.fail["cpus"] = sys.EINVAL
	if _, err = apply(f, p); !errors.Is(err, sys.EINVAL) || !slices.Equal(f.calls, []string{"cpus 2-3"}) {
		t.Errorf("%v, %v", f.calls, err)
	}
	f = fresh()
	if _, err := apply(f, Placement{}); err != nil || len(f.calls) != 0 {
		t.Errorf("nothing to do: %v, %v", f.calls, err)
	}
}
