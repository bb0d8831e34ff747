// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// From Linux 6.18, shortened; with figures of a second node added.
const taskSched = `homenode-load (8746, #threads: 1)
-------------------------------------------------------------------
se.exec_start                                :      69677081.758199
se.vruntime                                  :           193.837822
se.sum_exec_runtime                          :            12.623035
se.nr_migrations                             :                    0
policy                                       :                    0
clock-delta                                  :                   60
mm->numa_scan_seq                            :                    4
numa_pages_migrated                          :                   17
numa_preferred_nid                           :                    1
total_numa_faults                            :                  110
current_node=1, numa_group_id=8740
numa_faults node=0 task_private=10 task_shared=2 group_private=0 group_shared=0
numa_faults node=1 task_private=95 task_shared=3 group_private=7 group_shared=9
`

func TestDecodeTaskHints(t *testing.T) {
	want := TaskHints{
		Ran: 12*time.Millisecond + 623035, ScanSeq: 4, Node: unit.Some(1),
		Faults: []NodeFaults{{0, 12}, {1, 98}},
	}
	for about, text := range map[string]string{
		"a thread":                      taskSched,
		"one named to look like lines":  strings.Replace(taskSched, "homenode-load", "\ncurrent_node=0", 1),
		"one named to look like a rule": strings.Replace(taskSched, "homenode-load", "\n-------------\n", 1),
	} {
		got, err := ParseTaskHints([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) || !got.Known() {
			t.Errorf("%s: %+v, %v", about, got, err)
		}
	}
	before, _, _ := strings.Cut(taskSched, "mm->numa")
	for _, text := range []string{before, "", "x (1, #threads: 1)\n"} {
		if got, err := ParseTaskHints([]byte(text)); err != nil || got.Known() || got.Faults != nil {
			t.Errorf("without the lines: %+v, %v", got, err)
		}
	}
	for _, bad := range [][2]string{
		{"task_private=95", "task_private=x"}, {"task_private=95", "task_private=-1"}, {"task_shared=3", ""}, {"node=1 ", "node=1024 "},
		{"current_node=1", "current_node=-1"}, {"12.623035", "12.6"}, {"12.623035", "99999999999999.623035"}, {":                    4", ": -4"},
	} {
		got, err := ParseTaskHints([]byte(strings.Replace(taskSched, bad[0], bad[1], 1)))
		if !errors.Is(err, unix.ErrMalformed) || !reflect.DeepEqual(got, TaskHints{}) {
			t.Errorf("%q: %+v, %v", bad[1], got, err)
		}
	}
}

func FuzzTaskHints(f *testing.F) {
	f.Add([]byte(taskSched))
	f.Add([]byte("x\n-------------------------------------------------------------------\ncurrent_node=0\nnuma_faults node=0 task_private=1 task_shared=2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseTaskHints(data)
		if err != nil && !reflect.DeepEqual(h, TaskHints{}) || h.Ran < 0 {
			t.Fatalf("%+v, %v", h, err)
		}
	})
}

func BenchmarkTaskHints(b *testing.B) {
	data := []byte(taskSched)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseTaskHints(data); err != nil {
			b.Fatal(err)
		}
	}
}
