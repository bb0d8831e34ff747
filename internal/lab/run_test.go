// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/experiment"
)

// runs also returns an exit code, where mustRun requires 0.
func runs(t *testing.T, g *Guest, script string) Result {
	t.Helper()
	ctx, cancel := g.Within(t.Context(), patience)
	defer cancel()
	r, err := g.Run(ctx, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var onNode = regexp.MustCompile(` N(\d+)=(\d+)`)

// pagesOf finds the largest mapping of a numa_maps that has the text, and says how
// many of its pages are on each of two nodes, and what policy it has.
func pagesOf(maps, text string) (pages [2]int, policy string) {
	for line := range strings.Lines(maps) {
		if !strings.Contains(line, text) {
			continue
		}
		var here [2]int
		for _, m := range onNode.FindAllStringSubmatch(line, -1) {
			node, _ := strconv.Atoi(m[1])
			here[node&1], _ = strconv.Atoi(m[2])
		}
		if here[0]+here[1] > pages[0]+pages[1] {
			pages, policy = here, strings.Fields(line)[1]
		}
	}
	return pages, policy
}

// placed starts a program that touches 32 MiB, and shows where its pages are.
const placed = `rm -f /tmp/run.ready
homenode run FLAGS -- homenode-load hold --ws 33554432 --thp off --ready /tmp/run.ready </dev/null >/tmp/run.log 2>&1 &
pid=$!
for i in $(seq 300); do [ -e /tmp/run.ready ] && break; kill -0 $pid 2>/dev/null || break; sleep 0.1; done
cat /proc/$pid/numa_maps /proc/$pid/comm
grep Cpus_allowed_list /proc/$pid/status
kill $pid; wait $pid; cat /tmp/run.log >&2`

// Every policy puts a real program's pages where it promises, and puts the program on the
// CPUs that follow from it.
func TestLabRunPolicies(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	const all = 8192 // pages
	for _, c := range []struct {
		flags, policy, cpus string
		want                [2]int
	}{
		{"--nodes 1", "bind:1", "2-3", [2]int{0, all}},
		{"--nodes 1 --cpus 0", "bind:1", "0", [2]int{0, all}},
		{"--nodes 0-1 --policy interleave", "interleave:0-1", "0-3", [2]int{all / 2, all / 2}},
		{"--nodes 1 --policy preferred --cpus all", "prefer:1", "0-3", [2]int{0, all}},
		{"--nodes 1 --policy preferred-many --cpus 1", "prefer (many):1", "1", [2]int{0, all}},
		{"--nodes 1 --policy local", "local", "2-3", [2]int{0, all}},
		{"--cpus 3", "default", "3", [2]int{0, all}},
	} {
		r := runs(t, g, strings.ReplaceAll(placed, "FLAGS", c.flags))
		pages, policy := pagesOf(r.Stdout, "anon=")
		near := func(got, want int) bool { return got >= want && got <= want+64 || got >= want-64 && got <= want }
		if !strings.HasPrefix(c.policy, policy) || policy == "" || !near(pages[0], c.want[0]) || !near(pages[1], c.want[1]) ||
			!strings.Contains(r.Stdout, "Cpus_allowed_list:\t"+c.cpus+"\n") || !strings.Contains(r.Stdout, "homenode-load\n") {
			t.Errorf("run %s: pages %v under %s, want %v under %s on CPUs %s\n%s%s", c.flags, pages, policy, c.want, c.policy, c.cpus, r.Stdout, r.Stderr)
		}
	}
}

func TestLabRunRefuses(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	for _, c := range []struct{ line, want string }{
		{"homenode run --nodes 0-1 --policy weighted-interleave -- true", "does not have it: Linux has it since 6.9"},
		{"homenode run --nodes 0-2 -- true", "use node 2: no such node: this machine has nodes 0-1"},
		{"homenode run --nodes 1 --needs 4GiB -- true", "place 4 GiB by bind on node 1"},
		{"homenode run --nodes 1 -- /no/such", `start "/no/such": no such file`},
		{"homenode run --shm /tmp/none --nodes 1", "no such file: --create SIZE makes it"},
		{"homenode repeat -n 2 --nodes 7 -- true", "use node 7: no such node"},
		{"homenode repeat -n 2 --arms as-is -- sh -c 'echo no luck >&2; exit 3'", "failed with exit code 3: its last line: no luck"},
	} {
		if r := runs(t, g, c.line); r.Exit != 2 || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%s: exit %d, want %q\n%s%s", c.line, r.Exit, c.want, r.Stdout, r.Stderr)
		}
	}
	if r := runs(t, g, "homenode run --nodes 1 -- sh -c 'exit 7'"); r.Exit != 7 {
		t.Errorf("the program's exit code: %d\n%s", r.Exit, r.Stderr)
	}
}

// Nodes with room, below a cgroup that allows less: an error instead of a kill.
func TestLabRunMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v2", "v1"} {
		g := guest(t, "two", version)
		const inside = `set -e
top=/sys/fs/cgroup; [ -d $top/memory ] && top=$top/memory
mkdir -p $top/tight; [ -e $top/cgroup.controllers ] && echo +memory > $top/tight/cgroup.subtree_control
mkdir -p $top/tight/in
for f in memory.max memory.limit_in_bytes; do [ -e $top/tight/$f ] && echo 67108864 > $top/tight/$f; done
echo $$ > $top/tight/in/cgroup.procs
trap 'echo $$ > $top/cgroup.procs; rmdir $top/tight/in $top/tight' EXIT
set +e
`
		for _, c := range []string{
			"homenode run --nodes 1 --needs 100MiB -- true",
			"homenode run --shm /dev/shm/tight --create 100MiB --nodes 0-1 --policy interleave --touch",
			"homenode-load control on >/dev/null; homenode-lab probe --bytes 100MiB --work read; code=$?; homenode-load control off >/dev/null; exit $code",
		} {
			r := runs(t, g, inside+"mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm 2>/dev/null\n"+c)
			if r.Exit == 0 || r.Exit > 128 || !strings.Contains(r.Stderr, "cgroup /tight allows ") {
				t.Errorf("%s, %s: exit %d\n%s%s", version, c, r.Exit, r.Stdout, r.Stderr)
			}
			t.Logf("%s: %s", version, strings.TrimSpace(r.Stderr))
		}
		if r := runs(t, g, inside+"homenode run --nodes 1 --needs 8MiB -- true"); r.Exit != 0 {
			t.Errorf("%s: what fits: exit %d\n%s", version, r.Exit, r.Stderr)
		}
	}
}

// A segment's policy holds for another process that touches it.
func TestLabRunSegments(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	const tmpfs = `set -e
mkdir -p /tmp/run.tmpfs; mount -t tmpfs run /tmp/run.tmpfs 2>/dev/null || true
homenode run --shm /tmp/run.tmpfs/a --create 8MiB --nodes 1 >&2
homenode run --shm /tmp/run.tmpfs/a --nodes 0-1 --policy interleave --offset 4MiB >&2
rm -f /tmp/run.ready
homenode-load hold --ws 8388608 --file /tmp/run.tmpfs/a --bind-cpu 0 --ready /tmp/run.ready </dev/null >/tmp/run.log 2>&1 &
for i in $(seq 300); do [ -e /tmp/run.ready ] && break; sleep 0.1; done
cat /proc/$!/numa_maps; kill $!; wait $! || true`
	r := runs(t, g, tmpfs)
	// One mapping, two policies: numa_maps shows that of its first page.
	if pages, policy := pagesOf(r.Stdout, "/tmp/run.tmpfs/a"); r.Exit != 0 || pages != [2]int{512, 1536} || policy != "bind:1" {
		t.Errorf("tmpfs: pages %v under %s, want 512 and 1536\n%s%s", pages, policy, r.Stdout, r.Stderr)
	}
	strict := "homenode run --shm /tmp/run.tmpfs/a --nodes 0 --strict"
	if r := runs(t, g, strict); r.Exit != 1 || !strings.Contains(r.Stderr, "1536 on node 1 of 2048: nothing was set") {
		t.Errorf("strict: exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if r := runs(t, g, strict+" --move"); r.Exit != 0 || !strings.Contains(r.Stdout, "8 MiB of it that exist are on node") {
		t.Errorf("move: exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	putProgram(t, g, "shmtouch")
	r = runs(t, g, "homenode run --shmkey 0x77 --create 4MiB --nodes 0-1 --policy interleave >&2 && taskset 1 /tmp/shmtouch; ipcrm -M 0x77")
	if pages, policy := pagesOf(r.Stdout, "SYSV00000077"); pages != [2]int{512, 512} || policy != "interleave:0-1" {
		t.Errorf("System V: pages %v under %s\n%s%s", pages, policy, r.Stdout, r.Stderr)
	}
}

// putProgram builds a program of testdata and puts it into the guest's /tmp.
func putProgram(t *testing.T, g *Guest, name string) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("gcc", "-static", "-Os", "-s", "-o", exe, "testdata/"+name+".c").CombinedOutput(); err != nil {
		t.Skipf("build testdata/%s.c: %v: %s", name, err, out)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Put(t.Context(), "/tmp/"+name, 0o755, data); err != nil {
		t.Fatal(err)
	}
}

// A program that depends on memory is faster bound to a node than interleaved, in model
// time; repeat reports that and prints the command line.
func TestLabRepeat(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	r := runs(t, g, "homenode repeat -n 6 --arms as-is,node-1,interleave -o json -- homenode-load chase --ws 4194304 --thp off --ops 100000")
	if r.Exit != 0 {
		t.Fatalf("exit %d\n%s", r.Exit, r.Stderr)
	}
	var v experiment.Variation
	if err := json.Unmarshal([]byte(r.Stdout), &v); err != nil {
		t.Fatalf("%v\n%s", err, r.Stdout)
	}
	for _, a := range v.Arms {
		cv, _ := a.Time.Variation()
		t.Logf("%s: median %.3f model-s, %.3f–%.3f, CV %.2f%%", a.Name, a.Time.Median, a.Time.Min, a.Time.Max, 100*cv)
	}
	if len(v.Arms) != 3 || v.How.String() != "modelled" || !strings.Contains(v.Clock, "model clock of the lab") {
		t.Fatalf("%+v", v)
	}
	ratio, ok := experiment.RatioOf(v.Arms[2].Time.Values, v.Arms[1].Time.Values)
	if !ok || ratio.Value < 1.1 || !ratio.Differs() {
		t.Errorf("interleaved against bound: %+v", ratio)
	}
	// Which arm is recommended depends on how much each happened to vary: the faster of the
	// placed ones if it was steady in these runs, else the steadier one.
	want, line := "node-1", "homenode run --nodes 1 --policy bind"
	if cv, _ := v.Arms[1].Time.Variation(); cv >= experiment.SteadyEnough && v.Verdict.ForRepeatable == "interleave" {
		want, line = "interleave", "homenode run --nodes 0-1 --policy interleave"
	}
	if d := v.Verdict; d.ForRepeatable != want || strings.Join(d.RepeatableLine[:6], " ") != line {
		t.Errorf("%+v", d)
	}
}
