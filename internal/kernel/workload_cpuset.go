// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/window"
)

// cpusetFiles are the files of a workload's own setting and of what it may really use.
type cpusetFiles struct {
	ownCPUs, ownMems, effCPUs, effMems *unix.Kept
}

func newCpusetFiles(w *workload) cpusetFiles {
	file := func(name string) *unix.Kept { return w.file(w.layout.Cpuset, name) }
	return cpusetFiles{
		ownCPUs: file(cgroup.CPUsFile), effCPUs: file(w.layout.EffectiveFile(cgroup.CPUsFile)),
		ownMems: file(cgroup.MemsFile), effMems: file(w.layout.EffectiveFile(cgroup.MemsFile)),
	}
}

// binding reads the workload's cpuset, and which program set it.
//
//  1. Without a value of its own (v2: empty, or the controller is off) it has its
//     parent's.
//  2. A value that the journal knows is ours.
//  3. One that is narrower than the parent's was set by another process: pinned. On v1
//     every cpuset has a value, so most equal their parent's.
func (f *cpusetFiles) binding(rd *round, w *workload) (window.Binding, error) {
	parent, err := rd.parent(path.Dir(w.ID))
	if err != nil {
		return window.Binding{}, err
	}
	cpus, own1, err1 := readSet(&rd.buf, f.ownCPUs, f.effCPUs, parent.CPUs, set.ParseCPUs)
	mems, own2, err2 := readSet(&rd.buf, f.ownMems, f.effMems, parent.Mems, set.ParseNodes)
	if err := errors.Join(err1, err2); err != nil {
		return window.Binding{}, err
	}
	if own1+own2 == "" && !w.same() { // no value of its own, or none any more
		return window.Binding{}, fmt.Errorf("read cpuset of %s: %w", w.ID, ErrGone)
	}
	b := window.Binding{CPUs: cpus, Mems: mems}
	b.OursCPUs, b.OursMems = rd.isOurs(w, cgroup.CPUsFile, own1), rd.isOurs(w, cgroup.MemsFile, own2)
	if own1 != "" && !b.OursCPUs && cpus != parent.CPUs {
		b.PinnedCPUs, b.PinnedWhy = true, fmt.Sprintf("its own cpuset.cpus is %s, its parent has %s", own1, parent.CPUs)
	}
	if own2 != "" && !b.OursMems && mems != parent.Mems {
		b.PinnedMems = true
		b.PinnedWhy = join(b.PinnedWhy, fmt.Sprintf("its own cpuset.mems is %s, its parent has %s", own2, parent.Mems))
	}
	return b, nil
}

func (rd *round) isOurs(w *workload, file, own string) bool {
	return own != "" && rd.ours != nil && rd.ours(w.ID, file, own)
}

// parent reads what a parent may use, once a round.
func (rd *round) parent(id string) (cgroup.Effective, error) {
	if e, ok := rd.parents[id]; ok {
		return e, nil
	}
	e, err := rd.layout.ReadEffective(id, &rd.buf)
	if err == nil {
		rd.parents[id] = e
	}
	return e, err
}

// readSet reads the effective set and the own setting as text. Without a file of its
// own it is (1); on v1 before 3.17 there is no effective file.
func readSet[K set.Kind](buf *unix.Buffer, own, eff *unix.Kept, parent set.Set[K], parse func(string) (set.Set[K], error)) (set.Set[K], string, error) {
	none := set.Set[K]{}
	data, err := own.ReadLine(buf)
	if err != nil && unix.Classify(err) == ErrGone {
		return parent, "", nil
	}
	if err != nil {
		return none, "", unix.Explain("read", own.Path, "", err)
	}
	text := strings.TrimSpace(string(data))
	data, err = eff.ReadLine(buf)
	if err == nil {
		s, err := parse(string(data))
		return s, text, malformedSet(eff.Path, err)
	}
	if text == "" {
		return parent, "", nil
	}
	s, err := parse(text)
	return s, text, malformedSet(own.Path, err)
}

func malformedSet(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w (%w)", path, err, ErrMalformed)
}
