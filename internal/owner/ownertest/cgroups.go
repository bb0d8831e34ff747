// SPDX-License-Identifier: Apache-2.0

package ownertest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// Cgroups does what owner/cgroup does, on a fake tree.
type Cgroups struct {
	layout cgroup.Layout
	buf    unix.Buffer
	moves  *[]string
}

// NewCgroups adds each move to the requests that its manager got.
func NewCgroups(t *testing.T, root kernel.Root, asked *[]string) *Cgroups {
	t.Helper()
	layout, err := cgroup.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	return &Cgroups{layout: layout, moves: asked}
}

// Fits returns what a step sets.
func (c *Cgroups) Fits(step action.Step) (journal.Change, error) {
	file, value := cgroup.CPUsFile, step.CPUs.String()
	if step.Kind == action.SetMems {
		file, value = cgroup.MemsFile, step.Nodes.String()
	} else if step.Kind != action.SetCPUs {
		return journal.Change{}, fmt.Errorf("%w: it sets nothing", journal.ErrRefused)
	}
	_, err := unix.Inode(c.layout.Path(c.layout.Cpuset, step.Workload, ""))
	return journal.Change{Setting: journal.Setting{Cgroup: step.Workload, File: file}, New: value}, unix.Explain("act on", step.Workload, "", err)
}

// Read reads a file. A cgroup made anew has another ID.
func (c *Cgroups) Read(s journal.Setting) (journal.Current, error) {
	inode, err := unix.Inode(c.layout.Path(c.layout.Cpuset, s.Cgroup, ""))
	data, err2 := c.buf.ReadFile(c.layout.Path(c.layout.Cpuset, s.Cgroup, s.File))
	return journal.Current{Value: strings.TrimSpace(string(data)), ID: inode}, unix.Explain("read", s.String(), "", errors.Join(err, err2))
}

// Same compares the texts.
func (c *Cgroups) Same(_ journal.Setting, current, recorded string) bool { return current == recorded }

// Equivalent of an empty set is everything that the parent has.
func (c *Cgroups) Equivalent(s journal.Setting, original string) (string, error) {
	e, err := c.layout.ReadEffective(path.Dir(s.Cgroup), &c.buf)
	if original != "" {
		return original, err
	}
	if s.File == cgroup.MemsFile {
		return e.Mems.String(), err
	}
	return e.CPUs.String(), err
}

// MovePages moves all at once.
func (c *Cgroups) MovePages(_ context.Context, _ journal.Permit, step action.Step) action.Outcome {
	*c.moves = append(*c.moves, "MOVE to "+step.Nodes.String())
	return action.Outcome{Step: step, Status: action.Done, Moved: step.Budget}
}
