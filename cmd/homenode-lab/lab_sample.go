// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/exit"
	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/schema"
)

// sampledAccess is a sampling.Access as `homenode-lab sample` prints it.
type sampledAccess struct {
	PID    int    `json:"pid"`
	TID    int    `json:"tid"`
	CPU    int    `json:"cpu"`
	Addr   uint64 `json:"addr"`
	IP     uint64 `json:"ip"`
	Time   uint64 `json:"time_ns"`
	Weight uint64 `json:"weight"`
	Level  string `json:"level"`
	Store  bool   `json:"store"`
	Kernel bool   `json:"kernel"`

	Modified bool `json:"modified"`
}

type sampleReport struct {
	Samples   uint64          `json:"samples"`
	Qualified uint64          `json:"qualified"`
	Lost      uint64          `json:"lost"`
	Throttled uint64          `json:"throttled"`
	Accesses  []sampledAccess `json:"accesses"`
}

type sampleFlags struct {
	cfg     sampling.Config
	target  sampling.Target
	seconds float64
	ready   string
}

// labSample is for the lab's tests: access samples as JSON.
func labSample() *cobra.Command {
	f := sampleFlags{}
	cmd := &cobra.Command{
		Use: "sample", Hidden: true, Short: "Sample memory accesses and print them, until the time is over or SIGTERM arrives", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sampleAccesses(cmd, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.cfg.Loads, "loads", false, "sample loads")
	flags.BoolVar(&f.cfg.Stores, "stores", false, "sample stores")
	flags.BoolVar(&f.cfg.UserOnly, "user", false, "sample user mode only")
	flags.Uint64Var(&f.cfg.Period, "period", 1000, "accesses per sample")
	flags.IntVar(&f.cfg.LatencyThreshold, "ldlat", 3, "least latency of a load, in cycles")
	flags.StringVar(&f.target.Cgroup, "of-cgroup", "", "directory of a cgroup")
	flags.IntSliceVar(&f.target.TIDs, "tid", nil, "thread ids")
	flags.Float64Var(&f.seconds, "seconds", 1, "time to sample, seconds")
	flags.StringVar(&f.ready, "ready", "", "file to create once all events are open")
	return cmd
}

func sampleAccesses(cmd *cobra.Command, f sampleFlags) error {
	table, err := sampling.Detect(unix.NewLive().Root())
	if err != nil {
		return exit.BadInput(err)
	}
	f.cfg.Table = table
	m, err := machine.ParseSysfs(os.DirFS("/"), "live")
	if err != nil {
		return err
	}
	s, err := sampling.Open(unix.LivePerf{}, f.cfg, f.target, onlineCPUs(m))
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Start(); err != nil {
		return err
	}
	if err := tellReady(f.ready); err != nil {
		return err
	}
	r := sampleReport{Accesses: []sampledAccess{}}
	stats, err := s.Collect(cmd.Context(), time.Duration(f.seconds*float64(time.Second)), func(a sampling.Access) {
		r.Accesses = append(r.Accesses, sampledAccess{a.PID, a.TID, a.CPU, a.Addr, a.IP, a.Time, a.Weight, a.Level.String(), a.Store, a.Kernel, a.Modified})
	})
	if err != nil {
		return err
	}
	r.Samples, r.Qualified, r.Lost, r.Throttled = stats.Samples, stats.Qualified, stats.Lost, stats.Throttled
	return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
}

func onlineCPUs(m machine.Machine) []int {
	var cpus []int
	for _, c := range m.CPUs {
		if c.Online {
			cpus = append(cpus, c.ID)
		}
	}
	return cpus
}
