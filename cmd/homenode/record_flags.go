// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"homenode/internal/control/host"
	"homenode/internal/exit"
)

// addWindowFlags adds the flags of `record --windows`.
func addWindowFlags(f *pflag.FlagSet, o *host.RecordOptions, config *string) {
	f.StringVar(&o.File, "windows", "", "file for a recording of machine and workloads, for 'homenode top --replay'")
	f.DurationVar(&o.Length, "for", time.Minute, "with --windows: time to record; 0: until it is stopped")
	f.DurationVar(&o.Period, "period", 2*time.Second, "with --windows: time between two windows")
	f.StringArrayVar(&o.Workloads, "workload", nil, "with --windows: pattern of the cgroups to record, e.g. '/demo/*'; repeatable")
	f.StringVar(config, "config", "", "with --windows: the agent's configuration file with services and targets")
	f.BoolVar(&o.Penalty, "penalty", false, "with --windows: also count uncore requests, uncore waits and LLC misses of workloads, if the CPU has such events and room for them")
	f.StringVar(&o.Hints, "hint-faults", "auto", "with --windows: NUMA hint faults: auto (read if nothing counts DRAM reads), always, or off")
}

// withoutWindows refuses the flags of a recording of windows if there is none.
func withoutWindows(f *pflag.FlagSet) error {
	for _, name := range []string{"for", "period", "workload", "config", "hint-faults", "penalty"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for --windows: a machine is saved at once, and whole", name)
		}
	}
	return nil
}

// checkedWindows refuses impossible values, and reads the configuration.
func checkedWindows(o host.RecordOptions, config string) (host.RecordOptions, error) {
	if err := o.Check(); err != nil {
		return o, exit.BadInput(err)
	}
	var err error
	o.Agent, err = agentConfig(config, "")
	return o, err
}
