// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
)

const resctrlAt = "/sys/fs/resctrl"

// withResctrl gives the guest a resctrl file system until the test ends.
func withResctrl(t *testing.T, g *Guest, parameters string) {
	t.Helper()
	mustRun(t, g, "sh", "-c", "insmod /modules/homenode_resctrl.ko "+parameters+" && mount -t resctrl resctrl "+resctrlAt)
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", "umount "+resctrlAt+" && rmmod homenode_resctrl") })
	mustRun(t, g, "homenode-load", "control", "on")
	t.Cleanup(func() {
		mustRun(t, g, "sh", "-c", "killall -9 homenode-load homenode-agent; while pidof homenode-load homenode-agent >/dev/null; do sleep 0.05; done; homenode-load control off")
	})
}

// monData is mon_data of a group.
type monData struct{ total, local, llc int64 }

// readMon adds up its domains.
func readMon(t *testing.T, g *Guest, group string) monData {
	t.Helper()
	a, b := readDomain(t, g, group, 0), readDomain(t, g, group, 1)
	return monData{a.total + b.total, a.local + b.local, a.llc + b.llc}
}

func readDomain(t *testing.T, g *Guest, group string, domain int) (m monData) {
	t.Helper()
	files := 0
	for line := range strings.Lines(mustRun(t, g, "sh", "-c", fmt.Sprintf("grep -H . %s/%s/mon_data/mon_L3_%02d/*", resctrlAt, group, domain))) {
		file, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch file[strings.LastIndex(file, "/")+1:] {
		case "mbm_total_bytes":
			m.total += n
		case "mbm_local_bytes":
			m.local += n
		case "llc_occupancy":
			m.llc += n
		}
		files++
	}
	if files != 3 {
		t.Fatalf("%s has %d files of domain %d in mon_data, want 3", group, files, domain)
	}
	return m
}

func (m monData) minus(o monData) monData {
	return monData{m.total - o.total, m.local - o.local, m.llc}
}

// moves are lines that moved between CPUs and memory: [node of the CPUs][node of the memory].
type moves [2][2]int64

func (m moves) minus(o moves) moves {
	for i := range m {
		for n := range m[i] {
			m[i][n] -= o[i][n]
		}
	}
	return m
}

func (m moves) all() int64 { return m[0][0] + m[0][1] + m[1][0] + m[1][1] }

// linesMoved are the lines that the model's vCPUs moved to and from memory, by its own counters.
func linesMoved(t *testing.T, g *Guest) (m moves) {
	t.Helper()
	var s struct {
		VCPUs []struct{ DRAM, Writeback []uint64 } `json:"vcpus"`
	}
	if err := json.Unmarshal([]byte(mustRun(t, g, "homenode-load", "status")), &s); err != nil {
		t.Fatal(err)
	}
	for i, v := range s.VCPUs {
		for n := range v.DRAM {
			m[i/2][n] += int64(v.DRAM[n] + v.Writeback[n])
		}
	}
	return m
}

// loadIn runs homenode-load in a group. A shell enters the group and becomes the load: all
// of its memory is of that group.
func loadIn(group, args string) string {
	return fmt.Sprintf("(echo 0 > %s/%s/tasks && exec homenode-load %s)", resctrlAt, group, args)
}

// The lab's resctrl counts and limits as the model does, and keeps Linux's rules.
func TestLabResctrl(t *testing.T) {
	t.Parallel()
	g := like(t, "sapphire-rapids")
	t.Run("counts", func(t *testing.T) { countsByRMID(t, g) })
	t.Run("limits", func(t *testing.T) { limitsByClass(t, g) })
}

// What resctrl counts in the lab is what the model counted, and belongs to the group of the
// task that did it.
func countsByRMID(t *testing.T, g *Guest) {
	withResctrl(t, g, "rmids=4")
	mustRun(t, g, "mkdir", resctrlAt+"/mon_groups/m")
	outerFrom := linesMoved(t, g)
	before := readMon(t, g, "").total
	innerFrom := linesMoved(t, g)
	for home := range 2 {
		readsOf(t, g, home)
	}
	holds(t, g)
	innerTo := linesMoved(t, g)
	all := readMon(t, g, "").total - before
	outerTo := linesMoved(t, g)
	least, most := 64*innerTo.minus(innerFrom).all(), 64*outerTo.minus(outerFrom).all()
	t.Logf("%d bytes of all groups, %d to %d of the model", all, least, most)
	if all < least || all > most || most > least+least/20 {
		t.Errorf("all groups moved %d bytes: want %d to %d, as the model counted just before and after, and these within 5 %%", all, least, most)
	}
	rests(t, g)
}

// readsOf holds what a group moved, by where the memory is, to what its load read and to what the model says
// of the node's CPUs. The task's RMID also stands for the kernel that runs in it, whose memory is on either
// node: so the group has at least the reads, and at most what the CPUs moved meanwhile.
func readsOf(t *testing.T, g *Guest, home int) {
	t.Helper()
	const (
		ops  = 1_600_000
		lap  = 4 << 20 / 64   // the load's own warm lap
		held = 512 << 10 / 64 // lines that the LLC has from the load's start
	)
	mustRun(t, g, "sh", "-c", loadIn("mon_groups/m", fmt.Sprintf("chase --threads 1 --ws 4MiB --ops %d --bind-cpu 0 --bind-mem %d --hold 7 --ready /tmp/reads </dev/null >/tmp/reads.out", ops, home))+
		" >/tmp/reads.err 2>&1 & until [ -e /tmp/reads ]; do sleep 0.05; done; rm /tmp/reads")
	lines, before := linesMoved(t, g), readDomain(t, g, "mon_groups/m", 0)
	mustRun(t, g, "sh", "-c", "homenode-load control on --phase 7 >/dev/null; while pidof homenode-load >/dev/null; do sleep 0.5; done; homenode-load control on --phase 0")
	got := readDomain(t, g, "mon_groups/m", 0).minus(before)
	now := linesMoved(t, g).minus(lines)[0]
	for node, bytes := range []int64{got.local, got.total - got.local} {
		t.Logf("memory on node %d: of node %d the group moved %d lines, its node's CPUs %d", home, node, bytes/64, now[node])
		if bytes > 64*now[node] {
			t.Errorf("memory on node %d: of node %d the group moved more than its node's CPUs", home, node)
		}
		if lines := bytes / 64; node == home && (lines < ops+lap-held || lines > 105*(ops+lap)/100) {
			t.Errorf("memory on node %d: the group moved %d lines of it: want %d to %d", home, lines, ops+lap-held, 105*(ops+lap)/100)
		}
	}
}

// holds compares what a load keeps in the LLC with its working set, and its threads with
// those of the group: they started in it. A stream beside it drives out of the LLC what only
// the start of the load has brought there, which is the group's, too.
func holds(t *testing.T, g *Guest) {
	t.Helper()
	mustRun(t, g, "sh", "-c", loadIn("mon_groups/m", "chase --threads 2 --ws 128KiB --seconds 1000 --bind-cpu 0 --bind-mem 0 --ready /tmp/held </dev/null >/dev/null 2>&1")+" & until [ -e /tmp/held ]; do sleep 0.1; done; rm /tmp/held")
	tasks := mustRun(t, g, "sh", "-c", "sort "+resctrlAt+"/mon_groups/m/tasks; echo is; ls /proc/$(pidof homenode-load)/task | sort; grep -cx $(pidof homenode-load) "+resctrlAt+"/tasks")
	in, of, _ := strings.Cut(tasks, "is\n")
	if of != in+"0\n" && of != in+"1\n" || strings.Count(in, "\n") < 2 {
		t.Errorf("tasks of the group:\n%sof the program, and its lines in the default group's tasks:\n%s", in, of)
	}
	mustRun(t, g, "homenode-load", "stream", "--threads", "1", "--ws", "4MiB", "--ops", "100000", "--bind-cpu", "1", "--bind-mem", "0")
	mustRun(t, g, "sleep", "0.5")
	got := readMon(t, g, "mon_groups/m").llc
	t.Logf("llc_occupancy %d", got)
	if got < 230<<10 || got > 300<<10 {
		t.Errorf("llc_occupancy is %d, two threads use 128 KiB each", got)
	}
}

// rests removes the group of the load that holds, whose lines are in the LLC: its RMID is of
// use to no other group before they have left.
func rests(t *testing.T, g *Guest) {
	t.Helper()
	out := mustRun(t, g, "sh", "-c", "cd "+resctrlAt+"/mon_groups; echo 0 > ../info/L3_MON/max_threshold_occupancy; mkdir a b; rmdir m; mkdir c && echo made; cat ../info/last_cmd_status; true")
	if strings.Contains(out, "made") || !strings.Contains(out, "Out of RMIDs") {
		t.Errorf("the RMID of a group that has just been removed was used again: %s", out)
	}
	mustRun(t, g, "sh", "-c", "killall -9 homenode-load; while pidof homenode-load; do sleep 0.05; done; "+loadIn("mon_groups/a", "stream --threads 1 --ws 4MiB --ops 200000 --bind-cpu 0 --bind-mem 0 >/dev/null"))
	waitFor(t, g, "an RMID that leaves limbo", func() bool {
		return runs(t, g, "mkdir "+resctrlAt+"/mon_groups/c").Exit == 0
	})
	if got := readMon(t, g, "mon_groups/c"); got.total != 0 || got.local != 0 {
		t.Errorf("a new group has moved %+v", got)
	}
	mustRun(t, g, "sh", "-c", "rmdir "+resctrlAt+"/mon_groups/*")
}

// A class keeps a stream to its ways, and to its share of the LLC's rate.
func limitsByClass(t *testing.T, g *Guest) {
	withResctrl(t, g, "")
	mustRun(t, g, "mkdir", resctrlAt+"/c")
	cycles := map[int]float64{}
	for _, percent := range []int{100, 40, 10} {
		mustRun(t, g, "sh", "-c", fmt.Sprintf("printf 'L3:0=f000;1=f000\\nMB:0=%d\\n' > %s/c/schemata", percent, resctrlAt))
		var r loadReport
		out := mustRun(t, g, "sh", "-c", loadIn("c", "stream --threads 1 --ws 4MiB --ops 300000 --bind-cpu 0 --bind-mem 0 --perf cycles"))
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, n := range r.Perf {
			cycles[percent] = n / float64(r.Phases[0].Ops)
		}
	}
	t.Logf("cycles a line, by percent of MB: %v", cycles)
	within(t, "cycles a line at 40 %", cycles[40], 40*100/40, 0.03)
	within(t, "cycles a line at 10 %", cycles[10], 40*100/10, 0.03)
	if cycles[100] > 80 {
		t.Errorf("%.1f cycles a line without a limit", cycles[100])
	}
	fills(t, g)
	mustRun(t, g, "rmdir", resctrlAt+"/c")
	keepsRules(t, g)
}

// fills runs a stream in a class that has a quarter of the ways, which no other class fills.
func fills(t *testing.T, g *Guest) {
	t.Helper()
	mustRun(t, g, "sh", "-c", "cd "+resctrlAt+"; echo MB:0=100 > c/schemata; echo 'L3:0=fff;1=fff' > schemata; "+loadIn("c", "stream --threads 1 --ws 4MiB --seconds 1000 --bind-cpu 0 --bind-mem 0 </dev/null >/dev/null 2>&1")+" & sleep 0.5")
	const quarter = 512 << 10 / 4
	held := readDomain(t, g, "c", 0).llc
	t.Logf("a stream holds %d bytes of its class's %d", held, quarter)
	if held > quarter || held < quarter*9/10 {
		t.Errorf("the class holds %d bytes, its ways are %d", held, quarter)
	}
	mustRun(t, g, "sh", "-c", "killall -9 homenode-load; while pidof homenode-load; do sleep 0.05; done; true")
}

// keepsRules: the errors that Linux gives, and its words for them, as the fake of the fast
// tests has them.
func keepsRules(t *testing.T, g *Guest) {
	t.Helper()
	var script strings.Builder
	script.WriteString("cd " + resctrlAt + "\n")
	for _, r := range kerneltest.ResctrlRules {
		do := map[string]string{"make": "mkdir " + r.Name, "remove": "rmdir " + r.Name, "write": fmt.Sprintf("echo '%s' > %s", r.Text, r.Name)}[r.Op]
		fmt.Fprintf(&script, "err=$( (%s) 2>&1) && err=done; echo \"$err|$(cat info/last_cmd_status)\"\n", do)
	}
	lines := strings.Split(strings.TrimSpace(mustRun(t, g, "sh", "-c", script.String())), "\n")
	if len(lines) != len(kerneltest.ResctrlRules) {
		t.Fatalf("%d answers to %d operations: %q", len(lines), len(kerneltest.ResctrlRules), lines)
	}
	for i, r := range kerneltest.ResctrlRules {
		err, said, _ := strings.Cut(lines[i], "|")
		want := "done"
		if r.Errno != 0 {
			want = r.Errno.Error()
		}
		if !strings.HasSuffix(strings.ToLower(err), want) || said != r.Says {
			t.Errorf("%s %s %q: %s, %q; want %s, %q", r.Op, r.Name, r.Text, err, said, want, r.Says)
		}
	}
	for do, want := range map[string]string{
		"printf L3:0=1 > " + resctrlAt + "/schemata":                             "", // no newline
		"mount -t resctrl resctrl /tmp":                                          "busy",
		"mkdir " + resctrlAt + "/g && echo exclusive > " + resctrlAt + "/g/mode": "Invalid argument", // overlaps
	} {
		if r := runs(t, g, do); r.Exit == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%s: exit %d, %s; want %q", do, r.Exit, r.Stderr, want)
		}
	}
	mustRun(t, g, "rmdir", resctrlAt+"/g")
}

func resctrlThorough(t *testing.T) {
	t.Helper()
	if os.Getenv("HOMENODE_RESCTRL") == "" {
		t.Skip("HOMENODE_RESCTRL is not set: only scripts/test-full.sh isolates and rotates")
	}
}
