// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/experiment"
	"homenode/internal/kernel/launch"
	"homenode/internal/unit"
	"homenode/internal/views"
)

func needNode0(t *testing.T) {
	t.Helper()
	if code, text := runCaught(t, "run", "--nodes", "0", "--dry-run", "--", "true"); code != exit.Done {
		t.Skipf("nothing can be placed on node 0 here: %s", text)
	}
}

// Each bad request is exit code 2 and one line; nothing is started.
func TestRunRefuses(t *testing.T) {
	needNode0(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, want string
	}{
		{"run", "give a command after --"},
		{"run --nodes 0", "give a command after --"},
		{"run -- true", "nothing to place: give --nodes, --policy or --cpus"},
		{"run --nodes 0,999 -- true", "use node 999: no such node: this machine has"},
		{"run --nodes x -- true", "--nodes: "},
		{"run --nodes 0 --policy membind -- true", `policy "membind": no such policy: want local, bind`},
		{"run --policy interleave -- true", "policy interleave needs --nodes"},
		{"run --policy preferred --nodes 0-1 -- true", "preferred takes one node"},
		{"run --cpus 8000 -- true", "they do not exist or are offline"},
		{"run --cpus 0-x -- true", "--cpus: "},
		{"run --nodes 0 --needs 900TiB -- true", "are missing: node 0 has room for"},
		{"run --nodes 0 --needs 4G -- true", "unknown unit"},
		{"run --needs 4GiB --cpus 0 -- true", "--needs is checked against --nodes"},
		{"run --nodes 0 -o xml -- true", "text, json or yaml"},
		{"run --nodes 0 --dry-run -o markdown -- true", "text, json or yaml"},
		{"run --nodes 0 -- no-such-program-here", "it is not in PATH"},
		{"run --nodes 0 -- " + text, "may not be run"},
		{"run --nodes 0 --touch -- true", "--touch: that is for shared memory"},
		{"run --nodes 0 --shm /dev/shm/x -- true", "cannot be combined with shared memory"},
		{"run --nodes 0 --shm", "needs an argument"},
		{"run --nodes 0 --shm=", "--shm is empty"},
		{"run --nodes 0 --shm " + dir + "/none", "--create SIZE makes it"},
		{"run --nodes 0 --shm run.go", "keeps no policy, only tmpfs and hugetlbfs do"},
		{"run --nodes 0 --shm a --shmid 3", "give one of them"},
		{"run --nodes 0 --shmid x", "want an ID"},
		{"run --nodes 0 --shmid 3 --create 1MiB", "name the segment with --shmkey"},
		{"run --nodes 0 --shmid 1073741824", "ipcs -m"},
		{"run --nodes 0 --shmkey 0", "0 names no segment"},
		{"run --nodes 0 --shmkey 0x7a7a7a7a", "no such segment: --create SIZE makes it"},
		{"run --shmkey 1 --policy local --strict", "--strict and --move need --nodes"},
		{"run --shmkey 1 --policy local --nodes 0", "policy local takes no --nodes here"},
		{"run --shmkey 1 --nodes 0 --cpus 0", "--cpus: that is for programs"},
		{"run --shmkey 1 --nodes 0 --create 1M", "--create: "},
		{"run --nodes 0 -o json -- true", "-o json is for --dry-run: the output of a run is the program's"},
		{"run --shmkey 1", "place shared memory: no policy was given: give --nodes, or --policy local"},
		{"run --shm /dev/shm/x --policy bind", "policy bind needs --nodes"},
	} {
		code, text := runCaught(t, strings.Fields(c.line)...)
		if code != exit.Bad || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, want %q", c.line, code, text, c.want)
		}
	}
}

func TestRunDryRun(t *testing.T) {
	needNode0(t)
	text, err := statOut(t, "run", "--nodes", "0", "--dry-run", "--", "no-such-program", "a b", "-n")
	for _, want := range []string{"command  no-such-program 'a b' -n\n", "policy   bind 0\n", "CPUs     ", "node 0   ", " free, and ", "the same numactl --membind=0 --physcpubind="} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, no %q in\n%s", err, want, text)
		}
	}
	text, err = statOut(t, "run", "--nodes", "0", "--cpus", "all", "--policy", "interleave", "--dry-run", "-o", "json", "--", "true")
	var p host.RunPlan
	if err != nil || json.Unmarshal([]byte(text), &p) != nil || p.Schema != 1 || p.Policy != launch.Interleave || !p.CPUs.IsEmpty() ||
		strings.Join(p.Numactl, " ") != "numactl --interleave=0 -- true" || len(p.Rooms) != 1 || !p.Rooms[0].Free.Known() {
		t.Errorf("%v, %s", err, text)
	}
}

// The program replaces homenode: its output, its exit code, its placement.
func TestRunForReal(t *testing.T) {
	needNode0(t)
	exe := filepath.Join(t.TempDir(), "homenode")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(exe, "run", "--nodes", "0", "--cpus", "0", "--", "sh", "-c", "echo $$; grep Cpus_allowed_list /proc/self/status; grep -c bind:0 /proc/self/numa_maps; exit 7")
	out, err := cmd.Output()
	lines := strings.Split(string(out), "\n")
	if err == nil || cmd.ProcessState.ExitCode() != 7 || len(lines) != 4 || lines[1] != "Cpus_allowed_list:\t0" || lines[2] == "0" {
		t.Errorf("%v: %q", err, out)
	}
	// The program finds what it would have found without homenode: ignored
	// signals, limits.
	const look = "grep SigIgn /proc/self/status; ulimit -Sn"
	script := "trap '' INT HUP; ulimit -Sn 500; sh -c '" + look + "'; exec " + exe + " run --cpus 0 -- sh -c '" + look + "'"
	out, err = exec.Command("sh", "-c", script).Output()
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || len(lines) != 4 || lines[0] != lines[2] || lines[1] != "500" || lines[3] != "500" {
		t.Errorf("%v: %q", err, out)
	}
	// Flags after CMD belong to CMD, also without --.
	if out, err := exec.Command(exe, "run", "--cpus", "0", "echo", "--nodes", "9").Output(); err != nil || string(out) != "--nodes 9\n" {
		t.Errorf("%v: %q", err, out)
	}
}

func TestRunSegment(t *testing.T) {
	needNode0(t)
	dir, err := os.MkdirTemp("/dev/shm", "homenode-test-")
	if err != nil {
		t.Skipf("no /dev/shm to write to: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	name := filepath.Join(dir, "a")
	for _, c := range []struct{ args, want string }{
		{"--create 1MiB", name + ": made, 1 MiB, bind 0\n"},
		{"--touch", "all its pages exist"},
		{"", "1 MiB of it existed and stays where it is: --move moves it"},
		{"--move --strict", "the 1 MiB of it that exist are on nodes 0"},
		{"--offset 4KiB --length 8KiB", ": 8 KiB, bind 0"},
	} {
		text, err := statOut(t, append([]string{"run", "--shm", name, "--nodes", "0"}, strings.Fields(c.args)...)...)
		if err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v, %q, want %q", c.args, err, text, c.want)
		}
	}
	var got views.SegmentReport
	text, err := statOut(t, "run", "--shm", name, "--nodes", "0", "--move", "-o", "json")
	if err != nil || json.Unmarshal([]byte(text), &got) != nil || got.Schema != 1 || got.Name != name || got.Policy != launch.Bind ||
		got.Bytes != 1<<20 || got.Present.Or(0) != 1<<20 || got.Elsewhere == nil || len(got.Elsewhere) > 0 || got.ID.Known() {
		t.Errorf("%v, %s", err, text)
	}
}

// quickRuns makes each run take a millisecond, however slow the host is.
func quickRuns(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { repeatClock = nil })
	now := time.Duration(0)
	repeatClock = func() time.Duration { now += time.Millisecond; return now }
}

func TestRepeatRefuses(t *testing.T) {
	needNode0(t)
	quickRuns(t)
	for _, c := range []struct {
		line, want string
		lines      int
	}{
		{"repeat", "give a command after --", 1},
		{"repeat -n 1 -- true", "one run has no spread", 1},
		{"repeat -n 5000 -- true", "want 2 to 1000", 1},
		{"repeat --warmup -1 -- true", "--warmup -1", 1},
		{"repeat --timeout -1s -- true", "cannot be negative", 1},
		{"repeat --arms fastest -- true", `"fastest": unknown arm`, 1},
		{"repeat --arms node-999 -- true", "use node 999: no such node", 1},
		{"repeat --nodes 999 -- true", "use node 999: no such node", 1},
		{"repeat --nodes= -- true", "--nodes is empty", 1},
		{"repeat -o xml -- true", "text, json, yaml or markdown", 1},
		{"repeat -- true", "that is mostly the start of the program", 2},
		{"repeat --warmup 0 -n 2 -- true", "that is mostly the start of the program", 3},
		{"repeat -- no-such-program-here", "it is not in PATH", 2},
		{"repeat --timeout 1s -- sleep 600", "arm as-is: sleep 600 ran longer than 1s: it wrote nothing to stderr", 2},
		{"repeat -- false", "arm as-is: false failed with exit code 1", 2},
		{"repeat -- ls /no/such/file", "its last line: ls: ", 3},
	} {
		code, text := runCaught(t, strings.Fields(c.line)...)
		if code != exit.Bad || !strings.Contains(text, c.want) || c.lines == 1 && strings.Count(text, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, want %q", c.line, code, text, c.want)
		}
	}
}

func TestRepeatForReal(t *testing.T) {
	needNode0(t)
	text, err := statOut(t, "repeat", "-n", "3", "--arms", "as-is", "-o", "json", "--", "sleep", "0.02")
	var v experiment.Variation
	if err != nil || json.Unmarshal([]byte(text), &v) != nil || len(v.Arms) != 1 || v.Arms[0].Time.N != 3 || v.Arms[0].Time.Min < 0.02 || v.How != unit.HowMeasured {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err = statOut(t, "repeat", "-n", "2", "--arms", "as-is", "--", "sh", "-c", "sleep 60 & sleep 0.02"); err != nil || strings.Count(text, "left processes in the background") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err = statOut(t, "repeat", "-n", "2", "--arms", "as-is", "-o", "markdown", "--", "sleep", "0.02"); err != nil || !strings.Contains(text, "| as-is |") {
		t.Errorf("%v\n%s", err, text)
	}
	quickRuns(t)
	if text, err = statOut(t, "repeat", "-n", "2", "--anyway", "--arms", "default", "--", "true"); err != nil || !strings.Contains(text, "mostly the start of the program") {
		t.Errorf("%v\n%s", err, text)
	}
}
