// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/cli"
	"homenode/internal/event"
	"homenode/internal/exit"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/schema"
)

func runEvents(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(append([]string{"events"}, args...))
	cmd.SetOut(&out)
	err := cmd.Execute()
	return strings.Join(strings.Fields(out.String()), " "), err
}

func TestEvents(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	cpuinfo := "processor\t: 0\nvendor_id\t: AuthenticAMD\x1b[2J\ncpu family\t: 26\nmodel\t\t: 2\nstepping\t: 1\n"
	for _, c := range []struct{ info, want string }{{strings.Replace(cpuinfo, "\x1b[2J", "", 1), "table amd-zen5: AMD Zen 5 (Turin)"}, {cpuinfo, "table generic: any CPU"}} {
		if err := os.WriteFile(filepath.Join(root, "proc/cpuinfo"), []byte(c.info), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := runEvents(t, "--root", root)
		if err != nil || !strings.Contains(out, c.want) || strings.Contains(out, "\x1b") || !strings.Contains(out, "family 26 model 0x02 stepping 1") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	out, err := runEvents(t, "--cpu", "amd-zen5")
	for _, want := range []string{"r0964 + r1f71 + r1f72", "local_loads r100000865", "or r0844", "never run on hardware", "uncore_waits unknown", "cpu-cycles", "controller reads amd_umc/event=0x0a,rdwrmask=0x1/"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q: %v\n%s", want, err, out)
		}
	}
	out, err = runEvents(t, "--cpu", "lab", "-o", "json")
	var list eventList
	if err != nil || json.Unmarshal([]byte(out), &struct {
		Table *string `json:"table"`
	}{&list.Table}) != nil || list.Table != "lab" || !strings.Contains(out, `"perf": "r01d3"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := runEvents(t, "--cpu", "vax"); cli.Finish("homenode", err, &bytes.Buffer{}) != exit.Bad || !strings.Contains(err.Error(), "arm-neoverse-n1") {
		t.Errorf("an unknown table: %v", err)
	}
	if _, err := runEvents(t, "-o", "xml"); cli.Finish("homenode", err, &bytes.Buffer{}) != exit.Bad {
		t.Errorf("%v", err)
	}
}

// refusing opens what refuse lets it, and knows what is open.
type refusing struct {
	unix.Sampling
	refuse       func(*sys.PerfEventAttr) error
	opened, open int
}

func (r *refusing) OpenTask(attr *sys.PerfEventAttr, _, _, _ int) (int, error) {
	if err := r.refuse(attr); err != nil {
		return 0, err
	}
	r.opened, r.open = r.opened+1, r.open+1
	return 9 + r.opened, nil
}
func (r *refusing) Close(int) { r.open-- }

func try(t *testing.T, cpu string, within time.Duration, refuse func(*sys.PerfEventAttr) error) (eventList, string) {
	t.Helper()
	root := kerneltest.Tree(t, kerneltest.CPUTree(cpu))
	table := event.For(perf.DetectCPU(root))
	list, calls := listEvents(table, cpu), &refusing{refuse: refuse}
	trial{calls: calls, root: root, deadline: time.Now().Add(within)}.run(&list, table)
	var out, data bytes.Buffer
	if err := list.text(&out); err != nil || calls.open != 0 {
		t.Fatalf("%v, %d left open", err, calls.open)
	}
	if err := schema.NewEncoder(&data).Encode(list); err != nil || !strings.Contains(data.String(), `"tried_on_cpu":0`) {
		t.Fatalf("%v %s", err, data.String())
	}
	return list, strings.Join(strings.Fields(out.String()), " ")
}

// What the kernel refuses is named with the reason; what a CPU has no event for is neither.
func TestEventsThatOpen(t *testing.T) {
	all := func(*sys.PerfEventAttr) error { return nil }
	noRegister := func(a *sys.PerfEventAttr) error {
		if a.Type == sys.PERF_TYPE_RAW && a.Ext1 != 0 {
			return sys.ENXIO
		}
		return nil
	}
	for _, c := range []struct {
		cpu    string
		refuse func(*sys.PerfEventAttr) error
		want   []string
		not    string
	}{
		{"sapphire-rapids", all, []string{"12 of 12 fields open on CPU 0 for this user", "cycles counts cpu-cycles"}, "refused"},
		{"sapphire-rapids", noRegister, []string{"local_loads refused cpu/config=0x12a", "or counts r01d3", "refused: cpu/config=0x12a", "a hypervisor mostly hides it"}, "refused: all"},
		{"zen-4", func(*sys.PerfEventAttr) error { return sys.EACCES }, []string{"here nothing opens", "refused: all: not permitted: it needs CAP_PERFMON", "uncore_waits no event"}, "counts cpu-cycles"},
		{"zen-4", all, []string{"load_samples counts unknown"}, "refused"},
	} {
		_, out := try(t, c.cpu, time.Minute, c.refuse)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", c.cpu, want, out)
			}
		}
		if strings.Contains(out, c.not) {
			t.Errorf("%s: %q in\n%s", c.cpu, c.not, out)
		}
	}
	if list, out := try(t, "zen-4", -1, all); list.Fields[0].Counts[0].Opens != nil || !strings.Contains(out, "cycles not tried") {
		t.Errorf("out of time: %s", out)
	}
}

// A recorded tree and another CPU's table are not tried: they are not of this host.
func TestEventsNotTried(t *testing.T) {
	for _, args := range [][]string{{"--cpu", "generic"}, {"--root", kerneltest.Tree(t, kerneltest.CPUTree("zen-4")).Path("/")}} {
		out, err := runEvents(t, args...)
		list, err2 := runEvents(t, append(args, "-o", "json")...)
		if err != nil || err2 != nil || strings.Contains(out, "HERE") || !strings.Contains(list, `"tried_on_cpu": null`) {
			t.Errorf("%v: %v %v\n%s", args, err, err2, out)
		}
	}
	if out, err := runEvents(t); err != nil || !strings.Contains(out, "HERE") {
		t.Errorf("this host: %v\n%s", err, out)
	}
}
