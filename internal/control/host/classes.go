// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"homenode/internal/exit"
	"homenode/internal/interference"
	"homenode/internal/policy/vmmap"
	"homenode/internal/render"
	"homenode/internal/source"
)

// Classes are the classes of the workloads of recordings.
type Classes struct {
	Result interference.Result
	Own    bool // with constants of the machine, all of them
	CutOff bool // a recording was
}

// Classify finds the classes of the workloads that match a pattern. constants is a file; "":
// those of simulated machines.
func Classify(ctx context.Context, files []string, constants, workload string, stderr *os.File) (c Classes, err error) {
	f := vmmap.DefaultConfig().Infer
	var missing []string
	if constants != "" {
		if f, missing, err = source.Constants(constants); err != nil {
			return c, exit.BadInput(err)
		}
	}
	study, cutOff, err := Study(ctx, files, f, stderr)
	if err != nil {
		return c, exit.BadInput(err)
	}
	out := study.Result()
	if len(out.Workloads) == 0 {
		return c, exit.With(exit.Nothing, errors.New("the recording has no workloads: 'homenode record --workload' says which cgroups to watch"))
	}
	all := len(out.Workloads)
	out.Workloads = slices.DeleteFunc(out.Workloads, func(wl interference.Workload) bool { return !Matches(workload, wl.ID) })
	if len(out.Workloads) == 0 {
		return c, exit.With(exit.Nothing, fmt.Errorf("none of %d workloads matches --workload %q", all, workload))
	}
	switch {
	case constants == "":
		out.Notes = append(out.Notes, "the constants are from simulated machines, not from this one: 'homenode classes --help' says how to make its own")
	case len(missing) > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("%s has no %s: these are from simulated machines", constants, render.List(missing)))
	}
	out.Notes = append(out.Notes, cutOff...)
	return Classes{out, constants != "" && len(missing) == 0, len(cutOff) > 0}, nil
}
