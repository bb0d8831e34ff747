// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/spf13/cobra"
	sys "golang.org/x/sys/unix"

	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/schema"
)

// imcReport is the counts of one memory controller's PMU.
type imcReport struct {
	PMU     string            `json:"pmu"`
	CPU     int               `json:"cpu"`
	Counts  map[string]uint64 `json:"counts"`
	PerTask string            `json:"per_task"` // the answer to opening it for a task
}

// labUncore is for the lab's tests: memory controllers' counts as JSON.
func labUncore() *cobra.Command {
	var ready string
	cmd := &cobra.Command{
		Use: "uncore", Hidden: true, Short: "Count the work of the memory controllers until SIGTERM, and print it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return countUncore(cmd, ready) },
	}
	cmd.Flags().StringVar(&ready, "ready", "", "file to create once all counters are open")
	return cmd
}

// imcEvents are the lab's events of Skylake-SP, as perf_event_attr.config.
var imcEvents = map[string]uint64{"clockticks": 0x0000, "cas_count_read": 0x0304, "cas_count_write": 0x0c04, "rpq_not_empty": 0x0011}

func countUncore(cmd *cobra.Command, ready string) error {
	dirs, err := filepath.Glob("/sys/bus/event_source/devices/uncore_imc_*")
	if err != nil || len(dirs) == 0 {
		return exit.BadInput(fmt.Errorf("find memory controllers: no uncore_imc_* in /sys/bus/event_source/devices: this runs only inside the lab's guest"))
	}
	var all []imcReport
	var read []func() error
	for _, dir := range dirs {
		r, finish, err := openIMC(dir)
		if err != nil {
			return err
		}
		all, read = append(all, r), append(read, finish)
	}
	if err := tellReady(ready); err != nil {
		return err
	}
	<-cmd.Context().Done()
	for _, finish := range read {
		if err := finish(); err != nil {
			return err
		}
	}
	return schema.NewEncoder(cmd.OutOrStdout()).Encode(all)
}

// openIMC starts to count. The returned function fills in the counts.
func openIMC(dir string) (imcReport, func() error, error) {
	r := imcReport{PMU: filepath.Base(dir), Counts: map[string]uint64{}}
	typ, err := readNumber(filepath.Join(dir, "type"))
	if err != nil {
		return r, nil, err
	}
	if r.CPU, err = readNumber(filepath.Join(dir, "cpumask")); err != nil {
		return r, nil, err
	}
	fds := map[string]int{}
	for name, config := range imcEvents {
		attr := sys.PerfEventAttr{Type: uint32(typ), Config: config, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{}))}
		if fds[name], err = (unix.LivePerf{}).OpenTask(&attr, -1, r.CPU, -1); err != nil {
			return r, nil, unix.Explain("open", r.PMU+"/"+name, "", err)
		}
		if _, err := (unix.LivePerf{}).OpenTask(&attr, 0, -1, -1); err != nil {
			r.PerTask = err.Error()
		}
	}
	return r, func() error {
		for name, fd := range fds {
			var word [1]uint64
			if _, err := (unix.LivePerf{}).Read(fd, word[:]); err != nil {
				return unix.Explain("read", r.PMU+"/"+name, "", err)
			}
			r.Counts[name] = word[0]
		}
		return nil
	}, nil
}

func readNumber(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read PMU: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", path, err)
	}
	return n, nil
}
