// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"homenode/internal/cli"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/launch"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// RunFlags say how 'homenode run' places a program, as they were given.
type RunFlags struct{ Nodes, CPUs, Policy, Needs string }

// RunPlan is what 'run' will do.
type RunPlan struct {
	Schema int `json:"schema"` // 1
	launch.Placement
	Rooms []launch.Room `json:"rooms"` // room on the nodes
	// Cgroup is the tightest memory limit around this process, which the program inherits.
	Cgroup   unit.Opt[cgroup.MemoryRoom] `json:"cgroup_room"`
	Warnings []string                    `json:"notices"`
	Command  []string                    `json:"argv"`
	Numactl  []string                    `json:"numactl"`
}

// PlanRun checks everything that can be checked before the start.
func PlanRun(f RunFlags, argv []string) (RunPlan, error) {
	m, _, err := source.Live()
	if err != nil {
		return RunPlan{}, err
	}
	q, needs, err := f.Request(m)
	if err != nil {
		return RunPlan{}, err
	}
	limits, err := launch.ReadLimits(kernel.At("/"))
	if err != nil {
		return RunPlan{}, err
	}
	placement, err := launch.Resolve(q, m, limits)
	if err != nil {
		return RunPlan{}, err
	}
	p := RunPlan{Schema: 1, Placement: placement, Command: argv, Numactl: placement.Numactl(argv), Warnings: []string{}}
	if p.Rooms, err = launch.ReadRoom(kernel.At("/"), memoryOf(placement, q)); err != nil {
		return RunPlan{}, err
	}
	if p.Cgroup, err = cgroup.ReadMemoryRoom(kernel.At("/")); err != nil {
		return RunPlan{}, err
	}
	if err := cmp.Or(launch.Fits(placement, p.Rooms, needs), launch.Allowed(p.Cgroup, needs)); err != nil {
		return RunPlan{}, err
	}
	p.Warnings = append(p.Warnings, launch.Warnings(placement, p.Rooms)...)
	return p, launch.Probe(kernel.Live(), placement)
}

// memoryOf returns the nodes whose memory is taken first: with local, those
// that the program runs on.
func memoryOf(p launch.Placement, q launch.Request) set.NodeSet {
	if p.Policy == launch.Local {
		return q.Nodes
	}
	return p.Nodes
}

// Request reads the flags.
func (f RunFlags) Request(m machine.Machine) (q launch.Request, needs unit.Bytes, err error) {
	if q.Policy, err = launch.ParsePolicy(f.Policy); err != nil {
		return q, 0, err
	}
	if q.Nodes, err = source.Nodes("nodes", f.Nodes); err != nil {
		return q, 0, err
	}
	switch f.CPUs {
	case "":
	case "all":
		q.AllCPUs = true
	default:
		if q.CPUs, err = set.ParseCPUs(f.CPUs); err != nil {
			return q, 0, fmt.Errorf("--cpus: %w", err)
		}
	}
	if f.Needs != "" {
		if needs, err = unit.ParseBytes(f.Needs); err != nil {
			return q, 0, fmt.Errorf("--needs: %w", err)
		}
	}
	if needs > 0 && q.Nodes.IsEmpty() {
		return q, 0, errors.New("--needs is checked against --nodes: name them")
	}
	return q, needs, nil
}

// Print prints it as text or JSON.
func (p RunPlan) Print(w io.Writer, output string) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(p)
	}
	fmt.Fprintf(w, "command  %s\n", cli.ShellLine(p.Command))
	policy, cpus := "left as it is", "left as they are"
	if p.Policy != "" {
		policy = strings.TrimSpace(string(p.Policy) + " " + p.Nodes.String())
	}
	if !p.CPUs.IsEmpty() {
		cpus = p.CPUs.String()
	}
	fmt.Fprintf(w, "policy   %s\nCPUs     %s\n", policy, cpus)
	for _, r := range p.Rooms {
		fmt.Fprintf(w, "node %-3d %v of %v free, and %v of page cache that could go\n", r.Node, r.Free, r.Total, r.Cache)
	}
	if r, ok := p.Cgroup.Get(); ok {
		fmt.Fprintf(w, "limit    %s\n", render.Printable(r.String()))
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(w, "warning  %s\n", text)
	}
	_, err := fmt.Fprintf(w, "the same %s\n", cli.ShellLine(p.Numactl))
	return err
}
