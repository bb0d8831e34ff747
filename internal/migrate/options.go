// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"homenode/internal/migration"
	"homenode/internal/source"
)

// Options are a job as a person gives it: by the flags of 'homenode migrate'.
type Options struct {
	Workload, Cgroup, PIDs string
	To, From, Mode, Rate   string
	MaxStall, HotFor       time.Duration
	FreezeLimit            time.Duration
	Workers                int
	NoCache, LeaveShared   bool
	Partial, DryRun        bool
	Profile, State         string
	DirectOwners           []string
}

// Job checks everything that can be checked without looking at the machine. given says which
// flags were.
func (o Options) Job(given func(flag string) bool) (j Job, err error) {
	j = Job{
		Workload: o.Workload, Cgroup: o.Cgroup, Mode: migration.Mode(o.Mode), MaxStall: o.MaxStall, HotFor: o.HotFor, FreezeLimit: o.FreezeLimit, Workers: o.Workers, Cache: !o.NoCache,
		LeaveShared: o.LeaveShared, Partial: o.Partial, DryRun: o.DryRun, Profile: o.Profile, State: o.State, DirectOwners: o.DirectOwners,
	}
	if err := o.oneTarget(&j); err != nil {
		return j, err
	}
	if err := o.nodes(&j); err != nil {
		return j, err
	}
	if err := o.ofTheMode(given); err != nil {
		return j, err
	}
	if j.Rate, err = ParseRate(o.Rate); err != nil {
		return j, err
	}
	if j.Mode == migration.Freeze {
		j.Rate, j.MaxStall = 0, 0
	}
	return j, o.amounts(given)
}

func (o Options) oneTarget(j *Job) (err error) {
	given := slices.DeleteFunc([]string{o.Workload, o.Cgroup, o.PIDs}, func(s string) bool { return s == "" })
	switch {
	case len(given) == 0:
		return errors.New("nothing to move: give --workload, --cgroup or --pid")
	case len(given) > 1:
		return errors.New("--workload, --cgroup and --pid: give one of them")
	case o.PIDs == "":
		return nil
	case o.PIDs == "all":
		return errors.New("--pid all: the memory of all processes is not moved at once: name them, or a cgroup")
	}
	j.PIDs, err = source.PIDs("--pid", o.PIDs)
	slices.Sort(j.PIDs)
	j.PIDs = slices.Compact(j.PIDs)
	return err
}

func (o Options) nodes(j *Job) (err error) {
	if o.To == "" {
		return errors.New("nowhere to move to: give --to, such as --to 1")
	}
	if j.To, err = source.Nodes("to", o.To); err != nil {
		return err
	}
	if j.From, err = source.Nodes("from", o.From); err != nil {
		return err
	}
	if j.To.IsEmpty() {
		return fmt.Errorf("--to %q: it names no node", o.To)
	}
	if o.From != "" && j.From.IsEmpty() {
		return fmt.Errorf("--from %q: it names no node", o.From)
	}
	if both := j.From.Intersect(j.To); !both.IsEmpty() {
		return fmt.Errorf("--from %s, --to %s: %s is in both", j.From, j.To, NodesText(both))
	}
	return nil
}

// ofTheMode refuses flags that the mode does not use: the user expects an effect
// of them.
func (o Options) ofTheMode(given func(string) bool) error {
	live := []string{"rate", "max-stall"}
	frozen := []string{"freeze-limit", "direct-owner", "state"}
	var wrong []string
	why := ""
	switch migration.Mode(o.Mode) {
	case migration.Live:
		wrong, why = append(frozen, "hot-for"), "that is for another --mode than live"
	case migration.Freeze:
		wrong, why = append(live, "hot-for"), "a frozen workload is moved as fast as the memory allows: leave it out, or use --mode live"
	case migration.Hot:
		wrong, why = frozen, "that is for --mode freeze"
	default:
		return fmt.Errorf("--mode %q: want live, freeze or hot", o.Mode)
	}
	for _, name := range wrong {
		if given(name) {
			if name == "hot-for" {
				why = "that is for --mode hot"
			}
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	return nil
}

func (o Options) amounts(given func(string) bool) error {
	switch {
	case o.MaxStall < 0:
		return fmt.Errorf("--max-stall %v: it cannot be negative; 0 is no limit", o.MaxStall)
	case o.HotFor <= 0:
		return fmt.Errorf("--hot-for %v: it must be longer than 0", o.HotFor)
	case o.FreezeLimit <= 0:
		return fmt.Errorf("--freeze-limit %v: it must be longer than 0", o.FreezeLimit)
	case given("workers") && o.Workers < 1:
		return fmt.Errorf("--workers %d: want at least 1", o.Workers)
	case o.Workers > MostWorkers:
		return fmt.Errorf("--workers %d: want at most %d", o.Workers, MostWorkers)
	}
	return nil
}
