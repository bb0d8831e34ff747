// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Result is what became of it.
type Result struct {
	Moved unit.Bytes
	// Remaining is what the mappings visited in this call still have elsewhere,
	// pages that failed included. Not yet visited processes are not in it.
	Remaining   unit.Bytes
	Failed      map[string]unit.Bytes // by errno: "EBUSY", "EACCES", …
	CPUTime     time.Duration
	LongestCall time.Duration // of move_pages
	Calls       int
	// Complete says that every process was gone through to its end: what is left
	// could not be moved. Until then the next call goes on where this one stopped.
	Complete bool
}

// FailedBytes adds Failed up.
func (r Result) FailedBytes() (sum unit.Bytes) {
	for _, b := range r.Failed {
		sum += b
	}
	return sum
}

// String is for people.
func (r Result) String() string {
	s := fmt.Sprintf("moved %v in %d calls, the longest %v", r.Moved, r.Calls, r.LongestCall.Round(time.Microsecond))
	var why []string
	for name, b := range r.Failed {
		why = append(why, fmt.Sprintf("%v %s", b, name))
	}
	if slices.Sort(why); len(why) > 0 {
		s += "; not moved: " + strings.Join(why, ", ")
	}
	return s
}

// Config says how to move.
type Config struct {
	// Shared moves pages that other processes map too (CAP_SYS_NICE). Their other
	// users then find them on our node.
	Shared bool
	// Pager is nil for the kernel's.
	Pager unix.Pager
}

// Mover moves pages of processes of the running kernel.
type Mover struct {
	pager unix.Pager
	flags int
	root  unix.Root
	buf   unix.Buffer
	pass  map[int]*pass // by pid: where it stopped
	moves int           // calls of Move so far
	batch batch
	now   func() time.Time

	res   Result
	req   Request
	free  map[int]unit.Bytes // by node of req.To, an estimate from here on
	addrs []uintptr
	where []int32
	nodes []int32
}

const (
	maxBatch = 512 // pages a call: one huge page's worth; more holds mmap_lock longer
	minBatch = 8
	// slowCall tries a smaller batch: longer calls keep a program waiting that
	// maps or unmaps meanwhile. A call faster than fastCall tries a larger one.
	slowCall = 10 * time.Millisecond
	fastCall = 2 * time.Millisecond
	passLife = 64      // calls of Move that a pass is kept for without being used
	hugePage = 2 << 20 // bytes; PMD size on x86-64 and on arm64 with 4 KiB pages
	tries    = 4       // of a batch, as long as each gets somewhere
)

// NewMover wants the running kernel.
func NewMover(live unix.Live, cfg Config) (*Mover, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("move pages: only the running kernel can be acted upon (%w)", unix.ErrNotSupported)
	}
	return newMover(live.Root(), cfg), nil
}

func newMover(root unix.Root, cfg Config) *Mover {
	m := &Mover{pager: cfg.Pager, flags: unix.MoveOwn, root: root, pass: map[int]*pass{}, batch: newBatch(), now: time.Now}
	if m.pager == nil {
		m.pager = unix.LivePager{}
	}
	if cfg.Shared {
		m.flags = unix.MoveAll
	}
	return m
}

// pass is one way through a process's mappings.
type pass struct {
	start uint64      // of the process, in ticks: a pid may be reused
	to    set.NodeSet // it was begun for
	used  int         // the last Move that went on with it
	areas []area      // not yet done, ascending
}

// area is the rest of a mapping that has pages elsewhere.
type area struct {
	next, end uint64
	size      uint64 // of its pages, bytes
	elsewhere uint64 // pages, by numa_maps when the pass began
}

// Move moves pages of the processes to req.To until the budget is used up or all
// were gone through, or ctx's deadline has passed. Kernel threads have no mappings, processes that ended
// meanwhile none any more. The error is for what makes going on useless.
func (m *Mover) Move(ctx context.Context, req Request) (Result, error) {
	if req.To.IsEmpty() {
		return Result{}, errors.New("move pages: no node to move to")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := unix.ThreadCPU()
	m.res, m.req = Result{Failed: map[string]unit.Bytes{}, Complete: true}, req
	m.moves++
	m.forgetOld()
	m.readFree()
	err := m.moveAll(ctx)
	m.res.CPUTime = unix.ThreadCPU() - began
	m.res.Complete = m.res.Complete && err == nil
	if m.res.Complete {
		for _, pid := range req.PIDs {
			delete(m.pass, pid)
		}
	}
	return m.res, err
}

func (m *Mover) moveAll(ctx context.Context) error {
	for _, pid := range m.req.PIDs {
		if m.budget() == 0 {
			m.res.Complete = false
			return nil
		}
		if err := m.moveProcess(ctx, pid); err != nil && !errors.Is(err, unix.ErrGone) {
			return err
		}
	}
	return nil
}

func (m *Mover) budget() unit.Bytes { return max(0, m.req.Budget-m.res.Moved) }

// forgetOld drops passes that nobody went on with for a while: their process
// ended, or its workload is not moved any more. Several workloads take turns.
func (m *Mover) forgetOld() {
	for pid, p := range m.pass {
		if m.moves-p.used > passLife {
			delete(m.pass, pid)
		}
	}
}

// moveProcess goes on with a process where the last call stopped.
func (m *Mover) moveProcess(ctx context.Context, pid int) error {
	p, err := m.passOf(pid)
	if err != nil {
		return err
	}
	for began := true; len(p.areas) > 0; began = false {
		// A deadline that passed while the mappings were read must not keep this
		// from ever getting anywhere: a chunk is moved all the same.
		err := ctx.Err()
		if late := errors.Is(err, context.DeadlineExceeded); m.budget() == 0 || late && !began {
			m.res.Complete = false
			break
		} else if late {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("move pages of %d: %w", pid, err)
		}
		a := &p.areas[0]
		before := a.next
		if err := m.moveHuge(pid, a); err != nil {
			return err
		}
		if a.next == before {
			if err := m.moveChunk(pid, a); err != nil {
				return err
			}
		}
		if a.next >= a.end || a.elsewhere == 0 {
			m.res.Remaining += unit.Bytes(a.elsewhere * a.size)
			p.areas = p.areas[1:]
		}
	}
	for _, a := range p.areas {
		m.res.Remaining += unit.Bytes(a.elsewhere * a.size)
	}
	return nil
}

// passOf continues a pass or begins one.
func (m *Mover) passOf(pid int) (*pass, error) {
	data, err := m.buf.ReadFile(m.proc(pid, "stat"))
	if err != nil {
		return nil, unix.Explain("read", m.proc(pid, "stat"), "", err)
	}
	st, err := procfs.ParseTaskStat(data)
	if err != nil {
		return nil, err
	}
	if p := m.pass[pid]; p != nil && p.start == st.Start && p.to == m.req.To {
		p.used = m.moves
		return p, nil
	}
	areas, err := m.areas(pid)
	if err != nil {
		return nil, err
	}
	m.pass[pid] = &pass{start: st.Start, to: m.req.To, used: m.moves, areas: areas}
	return m.pass[pid], nil
}

func (m *Mover) proc(pid int, file string) string {
	return m.root.Path(fmt.Sprintf("/proc/%d/%s", pid, file))
}

// areas joins numa_maps, which knows the pages, with maps, which knows the ends.
// The two are read one after the other: a mapping only one of them has is left
// for the next pass.
func (m *Mover) areas(pid int) ([]area, error) {
	const need = "CAP_SYS_PTRACE"
	data, err := m.buf.ReadFile(m.proc(pid, "numa_maps"))
	if err != nil {
		return nil, unix.Explain("read", m.proc(pid, "numa_maps"), need, err)
	}
	vmas, err := procfs.ParseNumaMaps(data)
	if err != nil {
		return nil, err
	}
	if data, err = m.buf.ReadFile(m.proc(pid, "maps")); err != nil {
		return nil, unix.Explain("read", m.proc(pid, "maps"), need, err)
	}
	ranges, err := procfs.ParseMaps(data)
	if err != nil {
		return nil, err
	}
	return join(vmas, ranges, m.elsewhere), nil
}

func join(vmas []procfs.VMA, ranges []procfs.Range, elsewhere func(node int) bool) []area {
	ends := map[uint64]uint64{}
	for _, r := range ranges {
		ends[r.Start] = r.End
	}
	var areas []area
	for _, v := range vmas {
		a := area{next: v.Start, end: ends[v.Start], size: v.PageSize}
		for _, n := range v.Nodes {
			if elsewhere(n.Node) {
				a.elsewhere += n.Pages
			}
		}
		if a.elsewhere > 0 && a.end > a.next {
			areas = append(areas, a)
		}
	}
	return areas
}

// elsewhere says that a page on this node is to be moved.
func (m *Mover) elsewhere(node int) bool {
	return !m.req.To.Has(node) && (m.req.From.IsEmpty() || m.req.From.Has(node))
}

// readFree asks how much room the target nodes have.
func (m *Mover) readFree() {
	m.free = map[int]unit.Bytes{}
	for node := range m.req.To.All() {
		m.free[node] = 0
		data, err := m.buf.ReadFile(m.root.Path(fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", node)))
		if err != nil {
			continue
		}
		if info, err := procfs.ParseNodeMeminfo(data); err == nil {
			m.free[node] = info.Free.Or(0)
		}
	}
}

// target is the node with the most room; taking from its estimate makes several
// nodes take turns.
func (m *Mover) target(size unit.Bytes) int32 {
	best := -1
	for node := range m.req.To.All() {
		if best < 0 || m.free[node] > m.free[best] {
			best = node
		}
	}
	m.free[best] -= size
	return int32(best)
}

// name is an errno's, for people.
func name(status int32) string {
	if n := sys.ErrnoName(sys.Errno(-status)); n != "" {
		return n
	}
	return fmt.Sprintf("error %d", -status)
}
