// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/mempolicy"
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

// SegmentResult is what became of it. A page that exists keeps its place unless it
// is moved: a policy is for pages to come.
type SegmentResult struct {
	Name    string
	ID      unit.Opt[int] // of a System V segment
	Created bool
	Bytes   unit.Bytes // that the policy is set for
	Page    unit.Bytes
	// Present are the bytes that exist, unknown for huge pages; Elsewhere those of
	// them on other nodes, by node: only counted for Strict and Move.
	Present   unit.Opt[unit.Bytes]
	Elsewhere map[int]unit.Bytes
}

// ErrElsewhere is that pages are on other nodes than asked for.
var ErrElsewhere = errors.New("pages are on other nodes")

// PlaceSegment sets a segment's policy. It stays with the segment until that is
// removed, and holds for every process that maps it.
//
//  1. For Strict and Move, pages that exist are mapped here: mbind sees only what
//     the caller's page tables have (queue_pages_range in mm/mempolicy.c).
//  2. Strict without Move refuses before anything is set.
//  3. Move asks for pages that others map too, which needs CAP_SYS_NICE, and makes
//     do with the rest where that is not permitted.
//  4. Touch last: the new pages follow the new policy.
//
// What was made for it and then could not be placed is removed.
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
		return SegmentResult{}, fmt.Errorf("look at the pages of %s: the kernel does not tell which huge pages exist: leave --strict and --move out", m.name)
	}
	res = SegmentResult{Name: m.name, ID: m.id, Created: m.created, Bytes: roundUp(unit.Bytes(len(part)), m.page), Page: unit.Bytes(m.page)}
	return res, place(live, q, m, part, &res)
}

func place(live unix.Live, q SegmentRequest, m *mapped, part []byte, res *SegmentResult) error {
	present, err := presentPages(m, part)
	if err != nil {
		return err
	}
	res.Present = unit.OptOf(unit.Bytes(len(present)*m.page), !m.huge)
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
		if res.Elsewhere, err = elsewhere(part, present, m.page, q.Nodes); err != nil || len(res.Elsewhere) > 0 {
			return elsewhereError(m, res, "nothing was set: --move moves them", err)
		}
	}
	if err := bindPart(part, q); err != nil {
		return err
	}
	if q.Touch { // 4
		if err := touch(part, every(part, m.page)); err != nil {
			return fmt.Errorf("touch %s: %w", m.name, err)
		}
		present = every(part, m.page)
		res.Present = unit.Some(unit.Bytes(len(present) * m.page))
	}
	if q.Strict || q.Move {
		if res.Elsewhere, err = elsewhere(part, present, m.page, q.Nodes); err != nil || len(res.Elsewhere) > 0 {
			return elsewhereError(m, res, "the policy is set, but these could not be moved", err)
		}
	}
	return nil
}

// fitsTouched refuses pages that a cgroup does not allow or, bound, the nodes have
// no room for: making them would end in this process being killed. Huge pages come
// from their own pool, and say so.
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
		return fmt.Errorf("look where the pages of %s are: %w", m.name, err)
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
	err := mempolicy.Mbind(part, q.Policy, q.Nodes, flags)
	if flags == unix.MoveAll && errors.Is(err, sys.EPERM) {
		err = mempolicy.Mbind(part, q.Policy, q.Nodes, unix.MoveOwn)
	}
	if q.Move && errors.Is(err, sys.EIO) {
		return nil // some could not be moved: they are counted
	}
	if err != nil {
		return refused(q.Policy, err)
	}
	return nil
}

// every is the offset of every page.
func every(part []byte, page int) []int {
	out := make([]int, 0, len(part)/page+1)
	for at := 0; at < len(part); at += page {
		out = append(out, at)
	}
	return out
}

// presentPages are the offsets of the pages that exist: in memory, whoever mapped
// them (mincore_page in mm/mincore.c). Huge pages are not told.
func presentPages(m *mapped, part []byte) ([]int, error) {
	if m.huge || m.created { // of a new one there are none, and looking takes a minute a TiB
		return nil, nil
	}
	const window = 1 << 30
	var out []int
	for at := 0; at < len(part); at += window {
		piece := part[at:min(at+window, len(part))]
		in := make([]byte, (len(piece)+m.page-1)/m.page)
		_, _, errno := sys.Syscall(sys.SYS_MINCORE, uintptr(unsafe.Pointer(&piece[0])), uintptr(len(piece)), uintptr(unsafe.Pointer(&in[0])))
		if errno != 0 {
			return nil, unix.Explain("look at the pages of", m.name, "", errno)
		}
		for i, b := range in {
			if b&1 == 1 {
				out = append(out, at+i*m.page)
			}
		}
	}
	return out, nil
}

// touch reads a byte of each page. Of shared memory, that makes the page. A page
// that cannot be had (full tmpfs, no huge page left, file cut short) is SIGBUS.
func touch(part []byte, offsets []int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	at := 0
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("no page can be had for offset %v: the file system is full, there are no huge pages left, or the file was cut short", unit.Bytes(at))
		}
	}()
	var sum byte
	for _, at = range offsets {
		sum += part[at]
	}
	sink = sum
	return nil
}

// sink keeps the reads of touch.
var sink byte

// elsewhere asks where pages are, and adds up those that are not on nodes. Their
// place is known only once they are mapped here.
func elsewhere(part []byte, offsets []int, page int, nodes set.NodeSet) (map[int]unit.Bytes, error) {
	const batch = 4096
	out := map[int]unit.Bytes{}
	for len(offsets) > 0 {
		n := min(batch, len(offsets))
		addrs, where := make([]uintptr, n), make([]int32, n)
		for i, at := range offsets[:n] {
			addrs[i] = uintptr(unsafe.Pointer(&part[at]))
		}
		if _, err := (unix.LivePager{}).MovePages(0, addrs, nil, where, 0); err != nil {
			return nil, err
		}
		for _, node := range where {
			if node >= 0 && !nodes.Has(int(node)) {
				out[int(node)] += unit.Bytes(page)
			}
		}
		offsets = offsets[n:]
	}
	return out, nil
}

// isHuge looks a mapping up in numa_maps, which marks hugetlb ones.
func isHuge(all []byte) bool {
	data, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		return false
	}
	start := strconv.FormatUint(uint64(uintptr(unsafe.Pointer(&all[0]))), 16) + " "
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte(start)) {
			return bytes.Contains(line, []byte(" huge"))
		}
	}
	return false
}
