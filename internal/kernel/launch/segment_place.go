// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// SegmentRequest asks for a segment to be placed.
type SegmentRequest struct {
	Segment
	Policy Policy
	Nodes  set.NodeSet
	Strict bool // pages that exist must be on Nodes
	Move   bool // pages that exist go to Nodes
	Touch  bool // pages that do not exist are made now
}

// SegmentResult is the result. A page that exists keeps its place unless it is moved: a
// policy is for pages to come.
type SegmentResult struct {
	Name    string
	ID      unit.Opt[int] // of a System V segment
	Created bool
	Bytes   unit.Bytes // for which the policy is set
	Page    unit.Bytes
	// Present is the bytes that exist, unknown for huge pages; Elsewhere those of them
	// on other nodes, by node: only counted for Strict and Move.
	Present   unit.Opt[unit.Bytes]
	Elsewhere map[int]unit.Bytes
}

// ErrElsewhere means that pages are on nodes other than the requested ones.
var ErrElsewhere = errors.New("pages are on other nodes")

// PlaceSegment sets a segment's policy. The segment keeps it until it is removed, and
// it holds for every process that maps it.
//
//  1. For Strict and Move, pages that exist are mapped here: mbind sees only what
//     the caller's page tables have (queue_pages_range in mm/mempolicy.c).
//  2. Strict without Move refuses before anything is set.
//  3. Move also moves pages that other processes map, which needs CAP_SYS_NICE; if that
//     is not permitted, it moves the rest.
//  4. Touch last: the new pages follow the new policy.
//
// If it was made for this and then could not be placed, it is removed.
func PlaceSegment(live unix.Live, q SegmentRequest) (res SegmentResult, err error) {
	if err := needLive(live); err != nil {
		return SegmentResult{}, err
	}
	m, err := openSegment(q.Segment)
	if err != nil {
		return SegmentResult{}, err
	}
	defer func() {
		_ = m.unmap() // the process ends soon
		if err != nil && m.created {
			err = errors.Join(err, m.remove())
		}
	}()
	part, err := m.part(q.Segment)
	if err != nil {
		return SegmentResult{}, err
	}
	if m.huge && (q.Strict || q.Move) {
		return SegmentResult{}, fmt.Errorf("look at the pages of %s: the kernel does not show which huge pages exist: leave --strict and --move out", m.name)
	}
	res = SegmentResult{Name: m.name, ID: m.id, Created: m.created, Bytes: roundUp(unit.Bytes(len(part)), m.page), Page: unit.Bytes(m.page)}
	return res, place(live, q, m, part, &res)
}

func place(live unix.Live, q SegmentRequest, m *mapped, part []byte, res *SegmentResult) error {
	present, err := presentPages(m, part)
	if err != nil {
		return err
	}
	res.Present = unit.OptOf(present.bytes(), !m.huge)
	if q.Touch {
		if err := fitsTouched(live.Root(), q, res); err != nil {
			return err
		}
	}
	if q.Strict || q.Move { // 1
		if err := touch(part, present); err != nil {
			return err
		}
	}
	if q.Strict && !q.Move { // 2
		if res.Elsewhere, err = elsewhere(part, present, q.Nodes); err != nil || len(res.Elsewhere) > 0 {
			return elsewhereError(m, res, "nothing was set: --move moves them", err)
		}
	}
	if err := bindPart(part, q); err != nil {
		return err
	}
	if q.Touch { // 4
		present = every(part, m.page)
		if err := touch(part, present); err != nil {
			return fmt.Errorf("touch %s: %w", m.name, err)
		}
		res.Present = unit.Some(present.bytes())
	}
	if q.Strict || q.Move {
		if res.Elsewhere, err = elsewhere(part, present, q.Nodes); err != nil || len(res.Elsewhere) > 0 {
			return elsewhereError(m, res, "the policy is set, but these could not be moved", err)
		}
	}
	return nil
}

// fitsTouched refuses pages that a cgroup does not allow or, with bind, that the nodes
// have no room for: making them would get this process killed. Huge pages come from
// their own pool, which returns an error.
func fitsTouched(root unix.Root, q SegmentRequest, res *SegmentResult) error {
	present, ok := res.Present.Get()
	if !ok {
		return nil
	}
	limit, err := cgroup.ReadMemoryRoom(root)
	if err == nil {
		err = Allowed(limit, res.Bytes-present)
	}
	if err != nil || q.Policy != Bind {
		return err
	}
	rooms, err := ReadRoom(root, q.Nodes)
	if err != nil {
		return err
	}
	return Fits(Placement{Policy: q.Policy, Nodes: q.Nodes}, rooms, res.Bytes-present)
}

func elsewhereError(m *mapped, res *SegmentResult, what string, err error) error {
	if err != nil {
		return fmt.Errorf("find the nodes of the pages of %s: %w", m.name, err)
	}
	var each []string
	for _, node := range sortedKeys(res.Elsewhere) {
		each = append(each, fmt.Sprintf("%d on node %d", int64(res.Elsewhere[node])/int64(m.page), node))
	}
	return fmt.Errorf("place %s: %w than asked for: %s of %d: %s", m.name, ErrElsewhere, strings.Join(each, ", "),
		int64(res.Present.Or(0))/int64(m.page), what)
}

func sortedKeys(m map[int]unit.Bytes) (keys []int) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// bindPart is mbind(2).
func bindPart(part []byte, q SegmentRequest) error {
	flags := 0
	if q.Move { // 3
		flags = unix.MoveAll
	}
	err := unix.Mbind(part, q.Policy, q.Nodes, flags)
	if flags == unix.MoveAll && errors.Is(err, sys.EPERM) {
		err = unix.Mbind(part, q.Policy, q.Nodes, unix.MoveOwn)
	}
	if q.Move && errors.Is(err, sys.EIO) {
		return nil // some could not be moved: they are counted
	}
	if err != nil {
		return refused(q.Policy, err)
	}
	return nil
}
