// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/launch"
	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// checkNodes requires that the nodes exist, and that the target nodes have memory.
func (m *Move) checkNodes() error {
	var online set.NodeSet
	for _, n := range m.machine.Nodes {
		online = online.With(n.ID)
		if memory, ok := n.Memory.Get(); ok && memory == 0 && m.job.To.Has(n.ID) {
			return fmt.Errorf("--to %s: node %d has no memory", m.job.To, n.ID)
		}
	}
	for _, c := range []struct {
		flag string
		set  set.NodeSet
	}{{"--to", m.job.To}, {"--from", m.job.From}} {
		missing := c.set.Minus(online)
		if missing.IsEmpty() {
			continue
		}
		if offline := missing.Intersect(m.possible()); !offline.IsEmpty() {
			return fmt.Errorf("%s %s: %s: offline: this machine has %s online", c.flag, c.set, NodesText(offline), NodesText(online))
		}
		return fmt.Errorf("%s %s: %s: no such node: this machine has %s", c.flag, c.set, NodesText(missing), NodesText(online))
	}
	return nil
}

// possible are the nodes that may come online; without the file, those that are online.
func (m *Move) possible() set.NodeSet {
	var buf unix.Buffer
	data, err := buf.ReadFile(m.host.Root.Path("/sys/devices/system/node/possible"))
	if err != nil {
		return set.NodeSet{}
	}
	nodes, _ := set.ParseNodes(string(data))
	return nodes
}

// checkTarget requires a workload that may have memory there, and that we may change.
func (m *Move) checkTarget() error {
	if err := m.checkPowers(); err != nil {
		return err
	}
	if m.target.id != "" {
		if err := m.checkCgroup(); err != nil {
			return err
		}
	}
	for _, p := range m.target.processes {
		if shut := m.job.To.Minus(p.Mems); !shut.IsEmpty() && !p.Mems.IsEmpty() {
			return fmt.Errorf("move to %s: the cpuset of %v allows %s only", NodesText(shut), p, NodesText(p.Mems))
		}
	}
	limits, err := launch.ReadLimits(m.host.Root)
	if err != nil {
		return err
	}
	// New pages are allocated on our behalf, and our cpuset holds for them
	// (prepare_alloc_pages in mm/page_alloc.c).
	if shut := m.job.To.Minus(limits.Mems); !shut.IsEmpty() && !limits.Mems.IsEmpty() {
		return fmt.Errorf("move to %s: homenode's own cpuset allows %s only: start it in a cgroup that may use all nodes", NodesText(shut), NodesText(limits.Mems))
	}
	return nil
}

// checkCgroup checks which manager owns the cgroup, and what its cpuset allows.
func (m *Move) checkCgroup() error {
	layout, err := cgroup.Find(m.host.Root)
	if err != nil {
		return err
	}
	var buf unix.Buffer
	e, err := layout.ReadEffective(m.target.id, &buf)
	if err != nil {
		return err
	}
	if owner := layout.Owner(m.target.id, &buf); m.job.Mode == migration.Freeze && owner != cgroup.NoOwner && !slices.Contains(m.job.DirectOwners, owner) {
		return fmt.Errorf("freeze cgroup %s: it belongs to %s, which may be confused by that: use --direct-owner %s to freeze it anyway", m.target.id, owner, owner)
	}
	if shut := m.job.To.Minus(e.Mems); !shut.IsEmpty() && !e.Mems.IsEmpty() {
		return fmt.Errorf("move to %s: the cpuset of cgroup %s allows %s only", NodesText(shut), m.target.id, NodesText(e.Mems))
	}
	return nil
}

// checkPowers refuses processes of other users without the capabilities for them.
func (m *Move) checkPowers() error {
	powers, err := kernel.ReadPowers(m.host.Root)
	if err != nil {
		return err
	}
	lacks := powers.Lacks()
	if len(lacks) == 0 {
		return nil
	}
	us, known := powers.UID.Get()
	for _, p := range m.target.processes {
		if uid, ok := p.UID.Get(); ok && known && uid == us {
			continue
		}
		return fmt.Errorf("move %v: it belongs to another user, which needs %s: run homenode as root (%w)", p, strings.Join(lacks, " and "), kernel.ErrNotPermitted)
	}
	if !powers.Nice() {
		m.note("without CAP_SYS_NICE, pages that several processes map stay where they are (EACCES)")
	}
	return nil
}

// nice says that pages which other processes map too may be moved.
func (m *Move) nice() bool {
	powers, err := kernel.ReadPowers(m.host.Root)
	return err == nil && powers.Nice()
}

// checkRoom refuses what does not fit, or limits the budget to what fits.
func (m *Move) checkRoom() error {
	need := m.report.Estimate.Bytes
	if need == 0 {
		return nil
	}
	if most := m.job.Most; most > 0 && most < need {
		need, m.budget, m.report.Estimate = most, most, m.report.Estimate.Part(most)
	}
	room, err := launch.ReadMoveRoom(m.host.Root, m.job.To, m.machine.PageSize.Or(4*unit.KiB))
	if err != nil {
		return exit.BadInput(err)
	}
	huge, small := map[unit.Bytes]unit.Bytes{}, need
	for _, p := range m.report.Task().Pools {
		huge[p.PageSize] = min(small, p.Elsewhere(m.job.From, m.job.To))
		small -= huge[p.PageSize]
	}
	fits, missing := room.Fit(small, huge)
	if len(missing) == 0 {
		return nil
	}
	what := fmt.Sprintf("move %v to %s: %s", need, NodesText(m.job.To), strings.Join(missing, "; "))
	switch {
	case !m.job.Partial:
		return exit.BadInput(errors.New(what + "; --partial moves what fits"))
	case fits == 0:
		return exit.BadInput(errors.New(what + ": none of it fits"))
	}
	m.note("only %v are moved: %s", fits, strings.Join(missing, "; "))
	m.budget, m.report.Estimate = fits, m.report.Estimate.Part(fits)
	return nil
}

// checkLimit refuses a move that would not end before the guard thaws the cgroup.
func (m *Move) checkLimit() error {
	limit := m.job.FreezeLimit
	seconds, known := m.report.Estimate.Seconds.Get()
	if m.job.Mode != migration.Freeze || !known || seconds <= limit.Seconds() {
		return nil
	}
	return exit.BadInput(fmt.Errorf("freeze %s: moving %v is expected to take %s, but it is thawed after --freeze-limit %v: give a longer limit, or use --mode live",
		m.target.name, m.report.Estimate.Bytes, render.Seconds(seconds), limit))
}

// leftOnPurpose says that pages stayed because the user asked for that.
func leftOnPurpose(reason string) bool { return reason == migrate.LeftForeign }

// notMoved is the sum of what could not be moved.
func notMoved(r migration.Result) (sum unit.Bytes) {
	for _, f := range r.Failures() {
		if !leftOnPurpose(f.Reason) {
			sum += f.Bytes
		}
	}
	return sum
}
