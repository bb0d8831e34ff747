// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bytes"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/source"
)

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

func try(t *testing.T, cpu string, within time.Duration, refuse func(*sys.PerfEventAttr) error) (source.Events, string) {
	t.Helper()
	root := kerneltest.Tree(t, kerneltest.CPUTree(cpu))
	table := event.For(perf.DetectCPU(root))
	list, calls := source.ListEvents(table, cpu), &refusing{refuse: refuse}
	source.EventTrial{Calls: calls, Root: root, Deadline: time.Now().Add(within)}.Run(&list, table)
	var out, data bytes.Buffer
	if err := Events(&out, render.TextOptions{Width: 120, UTF8: true}, list); err != nil || calls.open != 0 {
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
