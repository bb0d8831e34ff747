// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"time"

	"homenode/internal/unit"
)

// TaskHints is what the kernel's NUMA balancing remembers of one thread.
type TaskHints struct {
	Ran     time.Duration // on a CPU since it started
	ScanSeq uint64        // number of complete walks of its address space by the kernel
	Node    unit.Opt[int] // of the CPU that it is on, or was on last
	// Faults are pages with a hint fault by node of the page, after the kernel moved it
	// if it did: those of the last scan, plus half of those before, and so on.
	Faults []NodeFaults
}

// NodeFaults are those of one node.
type NodeFaults struct {
	Node  int
	Pages uint64 // of private and of shared ones
}

// Known says that the kernel keeps these figures at all.
func (h TaskHints) Known() bool { return h.Node.Known() }

const schedFile = "/proc/PID/task/TID/sched"

var errPages = errors.New("not two numbers of pages")

// ParseTaskHints reads /proc/PID/task/TID/sched (proc_sched_show_task and
// print_numa_stats in kernel/sched/debug.c; these lines since 4.2, with
// CONFIG_NUMA_BALANCING and, before 6.15, CONFIG_SCHED_DEBUG). Without them it is zero.
// Run time is in milliseconds; a fault counts one page, or all pages of a huge page.
//
//	se.sum_exec_runtime                          :             0.623035
//	mm->numa_scan_seq                            :                    4
//	current_node=0, numa_group_id=0
//	numa_faults node=0 task_private=95 task_shared=3 group_private=0 group_shared=0
//
// Older kernels have the names of private and shared the wrong way round; the sum is
// right. It is numa_faults[NUMA_MEM] of task_numa_placement (kernel/sched/fair.c),
// which halves the old count and adds the new faults once a scan: it is not a counter
// that only grows.
func ParseTaskHints(data []byte) (TaskHints, error) {
	var h TaskHints
	// The name of the thread comes first. It may contain a line like one of ours, but
	// not the rule of 60 and more dashes below it.
	_, body, _ := bytes.Cut(data, []byte("\n--------------------------------------------------"))
	for n, line := range lines(body) {
		if err := h.line(line); err != nil {
			return TaskHints{}, malformed(schedFile, n, line, err)
		}
	}
	return h, nil
}

func (h *TaskHints) line(line []byte) (err error) {
	switch {
	case bytes.HasPrefix(line, []byte("se.sum_exec_runtime ")):
		h.Ran, err = milliseconds(afterColon(line))
	case bytes.HasPrefix(line, []byte("mm->numa_scan_seq ")):
		h.ScanSeq, err = number(afterColon(line))
	case bytes.HasPrefix(line, []byte("current_node=")):
		text, _, _ := bytes.Cut(line[len("current_node="):], []byte(","))
		var node uint64
		if node, err = number(text); err == nil && node < maxNode {
			h.Node = unit.Some(int(node))
		}
	case bytes.HasPrefix(line, []byte("numa_faults node=")):
		err = h.faults(line)
	}
	return err
}

// maxNode bounds a node's number: CONFIG_NODES_SHIFT is at most 10.
const maxNode = 1 << 10

func (h *TaskHints) faults(line []byte) error {
	node, err := valueAfter(line, "node=")
	if err != nil {
		return err
	}
	private, err1 := valueAfter(line, "task_private=")
	shared, err2 := valueAfter(line, "task_shared=")
	if err1 != nil || err2 != nil || private > 1<<52 || shared > 1<<52 || node >= maxNode || len(h.Faults) >= maxNode {
		return errPages
	}
	h.Faults = append(h.Faults, NodeFaults{Node: int(node), Pages: private + shared})
	return nil
}

// valueAfter is the number after " key=" up to the next blank.
func valueAfter(line []byte, key string) (uint64, error) {
	_, rest, ok := bytes.Cut(line, []byte(" "+key))
	if !ok {
		return 0, errShort
	}
	text, _ := nextField(rest)
	return number(text)
}

func afterColon(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, []byte(":"))
	return bytes.TrimSpace(rest)
}

// milliseconds reads "0.623035": the fraction has six digits, nanoseconds (SPLIT_NS).
func milliseconds(text []byte) (time.Duration, error) {
	whole, part, _ := bytes.Cut(text, []byte("."))
	ms, err := number(whole)
	if err != nil || ms > 1<<42 || len(part) != 6 {
		return 0, errNumber
	}
	ns, err := number(part)
	if err != nil {
		return 0, errNumber
	}
	return time.Duration(ms)*time.Millisecond + time.Duration(ns), nil
}
