// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/spf13/cobra"
	sys "golang.org/x/sys/unix"

	"homenode/internal/exit"
	"homenode/internal/kernel/bpfcount"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/schema"
)

type countFlags struct {
	how, cgroups      []string
	controller, ready string
	user              bool
}

// labCount is for the lab's tests: cgroups counted by perf, by BPF, or by both at once.
func labCount() *cobra.Command {
	var f countFlags
	cmd := &cobra.Command{
		Use: "count", Hidden: true, Short: "Count cgroups until SIGTERM, and print what each way counted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return countCgroups(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.how, "how", nil, "way to count: perf, bpf, bpf/N (in one of N ticks), model or model-loads (the lab's own PMU beside another CPU's); repeatable; default: only the kernel's own figures")
	flags.StringArrayVar(&f.cgroups, "cgroup", nil, "directory of a cgroup; repeatable")
	flags.StringVar(&f.controller, "controller", "", "controller of the cgroups' v1 hierarchy")
	flags.StringVar(&f.ready, "ready", "", "file to create once all counters are open")
	flags.BoolVar(&f.user, "user", false, "count user mode only")
	return cmd
}

// countReport holds the figures between the first reading and the last.
type countReport struct {
	// Cgroups has the events, in the table's order, and the clock, by way and
	// directory.
	Cgroups map[string]map[string][]uint64 `json:"cgroups"`
	// Scaled is by how much perf's counts are scaled up: 1, or more for events that took
	// turns.
	Scaled map[string]map[string]float64 `json:"scaled"`
	Files  map[string]int                `json:"files"`
	// KernelInstructions are executed on all CPUs in kernel mode, Switches are all context
	// switches.
	KernelInstructions uint64 `json:"kernel_instructions"`
	Switches           uint64 `json:"switches"`
}

// tellReady makes the file that the lab's tests wait for; "": none waits.
func tellReady(path string) error {
	if path == "" {
		return nil
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

// readCgroups reads all cgroups once.
type readCgroups func(now time.Duration) ([]perf.Sample, error)

func countCgroups(cmd *cobra.Command, f countFlags) error {
	var cpus []int
	for i := range runtime.NumCPU() {
		cpus = append(cpus, i)
	}
	table := perf.Detect(unix.Root{})
	report := countReport{Cgroups: map[string]map[string][]uint64{}, Scaled: map[string]map[string]float64{}, Files: map[string]int{}}
	ways := map[string]readCgroups{}
	for _, how := range f.how {
		read, files, err := openWay(how, f, table, cpus)
		if err != nil {
			return err
		}
		ways[how], report.Files[how] = read, files
		if _, err := read(0); err != nil {
			return err
		}
	}
	kernel, err := kernelInstructions(cpus)
	if err != nil {
		return err
	}
	instructions, switches, err := kernelSide(kernel)
	if err != nil {
		return err
	}
	if err := tellReady(f.ready); err != nil {
		return err
	}
	began := time.Now()
	<-cmd.Context().Done()
	if report.KernelInstructions, report.Switches, err = kernelSide(kernel); err != nil {
		return err
	}
	report.KernelInstructions, report.Switches = report.KernelInstructions-instructions, report.Switches-switches
	for how, read := range ways {
		samples, err := read(time.Since(began))
		if err != nil {
			return err
		}
		report.Cgroups[how], report.Scaled[how] = map[string][]uint64{}, map[string]float64{}
		for i, s := range samples {
			report.Cgroups[how][f.cgroups[i]], report.Scaled[how][f.cgroups[i]] = s.Total[:], max(1, s.Scaled)
		}
	}
	return schema.NewEncoder(cmd.OutOrStdout()).Encode(report)
}

func openWay(how string, f countFlags, table perf.Table, cpus []int) (readCgroups, int, error) {
	switch how {
	case "perf":
		return openPerf(f, table, cpus)
	case "model", "model-loads":
		own, err := modelTable(how == "model")
		if err != nil {
			return nil, 0, err
		}
		return openPerf(f, own, cpus)
	}
	every := 1
	if n, ok := strings.CutPrefix(how, "bpf/"); ok {
		if _, err := fmt.Sscan(n, &every); err != nil {
			return nil, 0, exit.BadInput(fmt.Errorf("parse --how %q: want bpf/N", how))
		}
	}
	c, err := bpfcount.New(bpfcount.Config{Events: table.Events, UserOnly: f.user, CPUs: cpus, Controller: f.controller,
		Slots: bpfcount.RoundUp(len(f.cgroups)), Every: every})
	if err != nil {
		return nil, 0, err
	}
	slots := make([]bpfcount.Slot, len(f.cgroups))
	for i, dir := range f.cgroups {
		id, err := unix.Inode(dir)
		if err != nil {
			return nil, 0, err
		}
		if slots[i], err = c.Add(id); err != nil {
			return nil, 0, err
		}
	}
	return func(now time.Duration) (all []perf.Sample, err error) {
		if err := c.Update(); err != nil {
			return nil, err
		}
		for _, slot := range slots {
			s, err := c.Read(slot, now, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	}, c.Files(), nil
}

const ownType = "/sys/bus/event_source/devices/homenode_lab/type"

// modelTable counts by the lab's own PMU, which a guest that looks like another CPU has,
// too: the truth about what the other PMU counts. Reads of DRAM are loads, and with writes
// also reads for writing.
func modelTable(writes bool) (perf.Table, error) {
	typ, err := readNumber(ownType)
	if err != nil {
		return perf.Table{}, err
	}
	t := perf.Table{Name: "model", How: perf.Lab().How}
	add := func(field perf.Field, config uint64) { // codes of lab/include/homenode_lab.h
		t.Events = append(t.Events, perf.Event{Field: field, Type: uint32(typ), Config: config})
	}
	add(perf.Cycles, 0x003c)
	add(perf.Instructions, 0x00c0)
	add(perf.StallCycles, 0x14a3)
	add(perf.LocalLoads, 0x01d3)
	add(perf.RemoteLoads, 0x02d3)
	if writes {
		add(perf.LocalLoads, 0x10d3)
		add(perf.RemoteLoads, 0x20d3)
	}
	return t, nil
}

func openPerf(f countFlags, table perf.Table, cpus []int) (readCgroups, int, error) {
	m := perf.NewMeter(unix.LivePerf{}, perf.Config{Table: table, UserOnly: f.user}, 1<<20)
	var groups []*perf.Group
	for _, dir := range f.cgroups {
		g, err := m.Open(dir, cpus, true)
		if err != nil {
			return nil, 0, err
		}
		groups = append(groups, g)
	}
	return func(now time.Duration) (all []perf.Sample, err error) {
		for _, g := range groups {
			s, err := g.Read(now, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	}, len(f.cgroups) * len(cpus) * (len(table.Events) + 1), nil
}

// kernelSide reads both figures of the whole machine.
func kernelSide(kernel func() (uint64, error)) (instructions, switches uint64, err error) {
	if instructions, err = kernel(); err != nil {
		return 0, 0, err
	}
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, unix.Explain("read", "/proc/stat", "", err)
	}
	switches, err = contextSwitches(data)
	return instructions, switches, err
}

// kernelInstructions counts on every CPU, for all processes.
func kernelInstructions(cpus []int) (func() (uint64, error), error) {
	attr := sys.PerfEventAttr{
		Type: sys.PERF_TYPE_HARDWARE, Config: sys.PERF_COUNT_HW_INSTRUCTIONS, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
		Bits: sys.PerfBitExcludeUser,
	}
	var files []int
	for _, cpu := range cpus {
		fd, err := unix.OpenOnCPU(&attr, cpu, -1)
		if err != nil {
			return nil, unix.Explain("open", fmt.Sprintf("instructions on cpu %d", cpu), "CAP_PERFMON", err)
		}
		files = append(files, fd)
	}
	return func() (uint64, error) { return sumCounters(unix.LivePerf{}, files) }, nil
}

// sumCounters adds up counters without a read format, one word each. A counter that
// cannot be read is not 0.
func sumCounters(calls interface {
	Read(fd int, words []uint64) (int, error)
}, files []int) (sum uint64, err error) {
	for i, fd := range files {
		var word [1]uint64
		n, err := calls.Read(fd, word[:])
		if err == nil && n < 1 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fmt.Errorf("read counter %d of %d: %w", i+1, len(files), err)
		}
		sum += word[0]
	}
	return sum, nil
}

// contextSwitches is the line ctxt of /proc/stat.
func contextSwitches(stat []byte) (n uint64, err error) {
	for line := range strings.Lines(string(stat)) {
		if rest, ok := strings.CutPrefix(line, "ctxt "); ok {
			if n, err = strconv.ParseUint(strings.TrimSpace(rest), 10, 64); err != nil {
				return 0, fmt.Errorf("parse /proc/stat: %.40q: %w", line, err)
			}
			return n, nil
		}
	}
	return 0, errors.New("parse /proc/stat: the line ctxt is missing")
}
