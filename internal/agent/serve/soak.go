// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"homenode/internal/agent"
	"homenode/internal/kernel"
)

// SoakResult is what an agent cost while it played a recording.
type SoakResult struct {
	Schema    int     `json:"schema"`
	Rounds    uint64  `json:"rounds"`
	Workloads int     `json:"workloads"`
	Nodes     int     `json:"nodes"`
	Seconds   float64 `json:"wall_s"`
	CPU       float64 `json:"cpu_s"`
	// From /proc/self/status at the end: the peak of resident memory, and how much of the
	// memory that is resident now is anonymous or the program's own file.
	PeakBytes int64             `json:"vm_hwm_bytes"`
	AnonBytes int64             `json:"rss_anon_bytes"`
	FileBytes int64             `json:"rss_file_bytes"`
	Decide    agent.Histogram   `json:"decide_times"`
	Decisions map[string]uint64 `json:"decisions"`
}

// Soak plays a recording to the agent's own loop, as fast as possible.
func Soak(ctx context.Context, c agent.Config, tape *agent.Tape, version string, rounds uint64) (SoakResult, error) {
	c.Log.Level = "error" // a day's log lines at once are of no use
	log, _ := agent.Logger(os.Stderr, c.Log)
	a, err := agent.New(ctx, agent.Options{Config: c, Rounds: rounds, Log: log, Play: tape})
	if err != nil {
		return SoakResult{}, err
	}
	began := time.Now()
	if err := Run(ctx, a, version, log, Hangups()); err != nil {
		return SoakResult{}, err
	}
	v, _ := a.View()
	out := SoakResult{Schema: 1, Rounds: v.Status.Rounds, Workloads: len(v.Status.Window.Workloads), Nodes: len(v.Status.Window.Nodes),
		Seconds: time.Since(began).Seconds(), CPU: kernel.ProcessCPU().Seconds(), Decide: v.Status.Totals.DecideTimes, Decisions: v.Status.Totals.Decisions}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return out, fmt.Errorf("read own memory: %w", err)
	}
	for name, to := range map[string]*int64{"VmHWM": &out.PeakBytes, "RssAnon": &out.AnonBytes, "RssFile": &out.FileBytes} {
		if *to, err = statusBytes(text, name); err != nil {
			return out, fmt.Errorf("read own memory: %w", err)
		}
	}
	return out, nil
}

// statusBytes parses a line "VmHWM:          12345 kB" of /proc/PID/status. A missing line
// is an error: 0 would be below every limit.
func statusBytes(text []byte, name string) (int64, error) {
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name+":")
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			n, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("%s is %q", name, fields[0])
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", name)
}
