// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"homenode/internal/control/host"
	"homenode/internal/exit"
)

// addWindowFlags adds what `record --windows` takes.
func addWindowFlags(f *pflag.FlagSet, o *host.RecordOptions, config *string) {
	f.StringVar(&o.File, "windows", "", "record what machine and workloads do into this file, for 'homenode top --replay'")
	f.DurationVar(&o.Length, "for", time.Minute, "with --windows: how long; 0: until it is ended")
	f.DurationVar(&o.Period, "period", 2*time.Second, "with --windows: how often to read")
	f.StringArrayVar(&o.Workloads, "workload", nil, "with --windows: only cgroups that match, e.g. '/demo/*'; may be repeated")
	f.StringVar(config, "config", "", "with --windows: the agent's configuration file, which names services and targets")
	f.BoolVar(&o.Penalty, "penalty", false, "with --windows: count uncore requests and waits and LLC misses of workloads as well, where the CPU has them and room for them")
	f.StringVar(&o.Hints, "hint-faults", "auto", "with --windows: read NUMA hint faults where nothing counts DRAM reads (auto), always, or off")
}

// withoutWindows refuses what says how to record windows where none are.
func withoutWindows(f *pflag.FlagSet) error {
	for _, name := range []string{"for", "period", "workload", "config", "hint-faults", "penalty"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for --windows: a machine is saved at once, and whole", name)
		}
	}
	return nil
}

// checkedWindows refuses what cannot be, and reads the configuration.
func checkedWindows(o host.RecordOptions, config string) (host.RecordOptions, error) {
	if err := o.Check(); err != nil {
		return o, exit.BadInput(err)
	}
	var err error
	o.Agent, err = agentConfig(config, "")
	return o, err
}
