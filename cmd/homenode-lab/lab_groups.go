// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/spf13/cobra"
	sys "golang.org/x/sys/unix"

	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/schema"
)

// groupReport is one group of events: nanoseconds, and counts as read, not
// scaled, in the given order.
type groupReport struct {
	Enabled uint64   `json:"enabled_ns"`
	Running uint64   `json:"running_ns"`
	Counts  []uint64 `json:"counts"`
}

type groupFlags struct {
	groups []string
	tid    int
	ready  string
}

// labGroups is for the lab's tests: groups of raw events of one thread as JSON.
func labGroups() *cobra.Command {
	var f groupFlags
	cmd := &cobra.Command{
		Use: "groups", Hidden: true, Short: "Count groups of raw events of a thread until SIGTERM, and print them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return countGroups(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.groups, "group", nil, "raw codes in hexadecimal, such as 1d3,2d3; repeatable")
	flags.IntVar(&f.tid, "tid", 0, "thread id")
	flags.StringVar(&f.ready, "ready", "", "file to create once all counters are open")
	return cmd
}

func countGroups(cmd *cobra.Command, f groupFlags) error {
	// Thread 0 is the caller's. Go may continue a function on another thread after any call,
	// and a group of two threads' events is an invalid argument.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fds := make([][]int, len(f.groups))
	for i, text := range f.groups {
		codes, err := rawCodes(text)
		if err != nil {
			return exit.BadInput(err)
		}
		if fds[i], err = openGroup(codes, f.tid); err != nil {
			return err
		}
	}
	if err := tellReady(f.ready); err != nil {
		return err
	}
	<-cmd.Context().Done()
	all := []groupReport{}
	for _, group := range fds {
		words := make([]uint64, 3+len(group))
		if n, err := (unix.LivePerf{}).Read(group[0], words); err != nil || n < len(words) {
			return fmt.Errorf("read group of events: %d of %d words (%w)", n, len(words), err)
		}
		all = append(all, groupReport{Enabled: words[1], Running: words[2], Counts: words[3:]})
	}
	return schema.NewEncoder(cmd.OutOrStdout()).Encode(all)
}

func rawCodes(text string) ([]uint64, error) {
	var codes []uint64
	for code := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseUint(code, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("parse --group %q: %q is not a hexadecimal number", text, code)
		}
		codes = append(codes, v)
	}
	return codes, nil
}

// openGroup opens user-mode events of a thread. They count at once.
func openGroup(codes []uint64, tid int) ([]int, error) {
	fds, leader := []int{}, -1
	for _, code := range codes {
		attr := sys.PerfEventAttr{
			Type: sys.PERF_TYPE_RAW, Config: code, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
			Bits:        sys.PerfBitExcludeKernel,
			Read_format: sys.PERF_FORMAT_GROUP | sys.PERF_FORMAT_TOTAL_TIME_ENABLED | sys.PERF_FORMAT_TOTAL_TIME_RUNNING,
		}
		fd, err := sys.PerfEventOpen(&attr, tid, -1, leader, sys.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return nil, unix.Explain("open", fmt.Sprintf("event %d of a group, raw %#x", len(fds)+1, code), "CAP_PERFMON", err)
		}
		fds = append(fds, fd)
		leader = fds[0]
	}
	return fds, nil
}
