// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"path"
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/set"
	"homenode/internal/window"
)

// Suspect is a setting of a cgroup that looks like one of homenode's, and that no record
// explains.
type Suspect struct {
	Workload string `json:"workload"`
	What     string `json:"what"`
	Undo     string `json:"undo"` // a command for a shell
}

// String is a sentence for people.
func (s Suspect) String() string {
	return fmt.Sprintf("%s: %s: if no other program did that: %s", s.Workload, s.What, s.Undo)
}

// Suspects lists what a homenode that lost its journal may have left: cpusets narrower
// than their parents' that consist of whole nodes, and frozen cgroups. ours reports the
// settings on record. An administrator may have made any of them, so people have to
// decide.
func Suspects(ctx context.Context, root Root, ours func(id, file, value string) bool) ([]Suspect, error) {
	r, err := NewReader(Config{Root: root, NoPerf: true, Ours: ours})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w, err := r.Read(ctx)
	if err != nil {
		return nil, err
	}
	var all []Suspect
	for _, wl := range w.Workloads {
		all = append(all, r.suspects(wl)...)
	}
	return all, nil
}

func (r *Reader) suspects(wl window.Workload) (all []Suspect) {
	own := r.workloads[wl.ID]
	cpus, _ := own.cpuset.ownCPUs.ReadLine(&r.buf)
	if text := strings.TrimSpace(string(cpus)); wl.Binding.PinnedCPUs && text != "" && r.wholeNodes(wl.Binding.CPUs) {
		all = append(all, r.suspect(wl.ID, cgroup.CPUsFile, text))
	}
	mems, _ := own.cpuset.ownMems.ReadLine(&r.buf)
	if text := strings.TrimSpace(string(mems)); wl.Binding.PinnedMems && text != "" {
		all = append(all, r.suspect(wl.ID, cgroup.MemsFile, text))
	}
	file := r.layout.Path(r.layout.Cpuset, wl.ID, "cgroup.freeze")
	if data, err := r.buf.ReadLine(file); err == nil && strings.TrimSpace(string(data)) == "1" {
		all = append(all, Suspect{wl.ID, "it is frozen", "echo 0 > " + quoted(file)})
	}
	return all
}

// suspect adds the command that undoes it: on v2 an empty value means the parent's, on
// v1 it does not.
func (r *Reader) suspect(id, file, value string) Suspect {
	to := quoted(r.layout.Path(r.layout.Cpuset, id, file))
	undo := "echo > " + to
	if !r.layout.Cpuset.V2 {
		undo = "cat " + quoted(r.layout.Path(r.layout.Cpuset, path.Dir(id), file)) + " > " + to
	}
	return Suspect{id, fmt.Sprintf("its %s is %s", file, value), undo}
}

// wholeNodes says that CPUs are all CPUs of some nodes, and no others.
func (r *Reader) wholeNodes(cpus set.CPUSet) bool {
	var nodes set.CPUSet
	for _, n := range r.topology.Machine.Nodes {
		if n.CPUs.Overlaps(cpus) {
			nodes = nodes.Union(n.CPUs)
		}
	}
	return nodes.Equal(cpus)
}

// quoted is a word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
