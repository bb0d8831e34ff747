// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// The sources, as Config names them; the best first.
const (
	Samples    = "pmu"
	DAMON      = "damon"
	Idle       = "idle"
	Referenced = "referenced"
)

// Config says how to search.
type Config struct {
	For     time.Duration // length of the search, wall-clock time
	Sources []string      // to be tried, in this order; nil: all, the best first
	// Share is the least share of a mapping's resident bytes that makes it hot where only
	// mappings can be distinguished; 0: defaultShare.
	Share float64
	// Period is the number of accesses for one PMU sample; 0: a period that brings enough
	// samples and costs a few percent of a CPU.
	Period uint64
	// Least samples make a page hot; 0: one.
	Least int
	// Grain is how much of a mapping one hit heats: the aligned bytes around it, a power
	// of two. A larger grain finds more of a large working set in a short search, and
	// heats more cold memory. 0: a page.
	Grain unit.Bytes
	// Calls is nil for the kernel's.
	Calls unix.Sampling
}

// defaultShare: a mapping moves as a whole. With less than half of it hot, more cold than
// hot memory would move.
const defaultShare = 0.5

// source is a way to find hot pages.
type source struct {
	name, unit string
	make       func(*search) finder
}

// finder searches. An error of available or find is a reason to try the next source.
type finder interface {
	// available returns why it cannot be used; it changes nothing.
	available() error
	// find reports the pages it found to the look, and how they are known.
	find(ctx context.Context) (unit.Source, error)
}

// sources are by name; All has them in order.
func sources(name string) source {
	return map[string]source{
		Samples:    {"PMU samples", "page", func(l *search) finder { return &samples{search: l} }},
		DAMON:      {"DAMON", "region", func(l *search) finder { return &damon{search: l} }},
		Idle:       {"idle page tracking", "page", func(l *search) finder { return &idle{search: l} }},
		Referenced: {"referenced bits (clear_refs)", "mapping", func(l *search) finder { return &referenced{search: l} }},
	}[name]
}

// All are the sources' names, the best first.
func All() []string { return []string{Samples, DAMON, Idle, Referenced} }

// Find returns the pages of the processes that were accessed within cfg.For from now on.
// Processes that end meanwhile are left out. ErrNotSupported comes with the reason
// against each source.
func Find(ctx context.Context, live unix.Live, pids []int, cfg Config) (Pages, error) {
	if !live.Valid() {
		return Pages{}, fmt.Errorf("find hot pages: only the running kernel can be asked (%w)", unix.ErrNotSupported)
	}
	return find(ctx, newSearch(live.Root(), cfg), pids)
}

// search is one search for hot pages.
type search struct {
	root  unix.Root
	cfg   Config
	pids  []int // that can be searched
	buf   unix.Buffer
	write func(path, value string) error
	wait  func(ctx context.Context, d time.Duration) error // while the processes run
	found map[int][]span
	notes []string
}

func newSearch(root unix.Root, cfg Config) *search {
	if cfg.Sources == nil {
		cfg.Sources = All()
	}
	if cfg.Share == 0 {
		cfg.Share = defaultShare
	}
	if cfg.Calls == nil {
		cfg.Calls = unix.LivePerf{}
	}
	return &search{root: root, cfg: cfg, write: unix.WriteFile, wait: unix.Sleep}
}

func (c Config) check() error {
	if c.For <= 0 {
		return fmt.Errorf("find hot pages: looking for %v finds nothing: give a time", c.For)
	}
	if c.Share < 0 || c.Share > 1 {
		return fmt.Errorf("find hot pages: share %g is not within 0 to 1", c.Share)
	}
	if c.Grain < 0 || c.Grain&(c.Grain-1) != 0 {
		return fmt.Errorf("find hot pages: a grain of %d bytes is no power of two", c.Grain)
	}
	for _, s := range c.Sources {
		if !slices.Contains(All(), s) {
			return fmt.Errorf("find hot pages: unknown source %q: want some of %s", s, strings.Join(All(), ", "))
		}
	}
	return nil
}

func find(ctx context.Context, l *search, pids []int) (Pages, error) {
	if err := l.cfg.check(); err != nil {
		return Pages{}, err
	}
	if err := l.admit(pids); err != nil {
		return Pages{}, err
	}
	var against []error
	admitted := l.notes
	for _, key := range l.cfg.Sources {
		l.found, l.notes = map[int][]span{}, slices.Clone(admitted)
		p, err := l.try(ctx, sources(key))
		if err == nil {
			p.heat.Others = sentences(against)
			return p, nil
		}
		if over := ctx.Err(); over != nil {
			if !errors.Is(err, over) {
				err = over
			}
			return Pages{}, fmt.Errorf("find hot pages: %w", err)
		}
		against = append(against, fmt.Errorf("%s: %w", sources(key).name, err))
	}
	return Pages{}, nothing(against)
}

func (l *search) try(ctx context.Context, s source) (Pages, error) {
	f := s.make(l)
	if err := f.available(); err != nil {
		return Pages{}, err
	}
	began := time.Now()
	how, err := f.find(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Pages{}, err
	}
	p := Pages{spans: map[int][]span{}, heat: migration.Heat{Source: s.name, How: how, Unit: s.unit, For: time.Since(began)}}
	if err := l.settle(&p); err != nil {
		return Pages{}, err
	}
	p.notes = l.notes
	return p, nil
}

// settle makes pages of what was found, by the present mappings.
func (l *search) settle(p *Pages) error {
	for _, pid := range l.pids {
		areas, err := l.smaps(pid)
		if errors.Is(err, unix.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		if s := settle(l.found[pid], areas, l.cfg.Grain); len(s) > 0 {
			p.spans[pid] = s
		}
		for _, m := range mappingsOf(pid, p.spans[pid], areas) {
			p.mappings = append(p.mappings, m)
			p.heat.Bytes += m.Hot
		}
	}
	return nil
}

// admit sorts out processes that cannot be searched: without permission to open smaps, no
// later step is permitted either. Ended processes are left out without a note.
func (l *search) admit(pids []int) error {
	var denied error
	for _, pid := range pids {
		path := l.proc(pid, "smaps")
		f, err := os.Open(path)
		if err == nil {
			f.Close()
			l.pids = append(l.pids, pid)
			continue
		}
		if err = unix.Explain("open", path, "CAP_SYS_PTRACE", err); errors.Is(err, unix.ErrGone) {
			continue
		}
		denied = err
		l.note("process %d was left out: %v", pid, err)
	}
	if len(l.pids) > 0 {
		return nil
	}
	if denied != nil {
		return fmt.Errorf("find hot pages: %w", denied)
	}
	return fmt.Errorf("find hot pages: none of the %d processes is there any more (%w)", len(pids), unix.ErrGone)
}

func (l *search) addSpan(pid int, s span) { l.found[pid] = append(l.found[pid], s) }

func (l *search) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

func (l *search) proc(pid int, file string) string {
	return l.root.Path(fmt.Sprintf("/proc/%d/%s", pid, file))
}

func (l *search) smaps(pid int) ([]procfs.SmapsArea, error) {
	path := l.proc(pid, "smaps")
	areas, err := procfs.ReadSmaps(&l.buf, path, procfs.MapsBudget())
	return areas, unix.Explain("read", path, "CAP_SYS_PTRACE", err)
}

// tlbNote holds for every source that uses the accessed bits of page tables. The kernel
// clears them without flushing the TLBs, and a CPU sets one only when it walks the table
// (clear_refs_write in fs/proc/task_mmu.c flushes for soft-dirty bits only;
// ptep_clear_flush_young in arch/x86/mm/pgtable.c says why). TestLabHot saw two huge
// pages look idle for a second although a program alone on its CPU went through them.
const tlbNote = "Pages that stayed in a CPU's TLB all the time look unused: some few that are used most, or huge ones, may be taken for cold."

// sentences leave out what all of them end with.
func sentences(errs []error) []string {
	var all []string
	for _, err := range errs {
		text := strings.TrimSuffix(err.Error(), ": "+unix.ErrNotSupported.Error())
		all = append(all, strings.ReplaceAll(text, "\n", "; "))
	}
	return all
}

// nothing returns the reasons against every source, and whether a privilege is missing.
func nothing(against []error) error {
	why := strings.Join(sentences(against), "; ")
	if errors.Is(errors.Join(against...), unix.ErrNotPermitted) {
		return fmt.Errorf("find hot pages: no way of finding them works here: %s: %w (%w)", why, unix.ErrNotSupported, unix.ErrNotPermitted)
	}
	return fmt.Errorf("find hot pages: no way of finding them works here: %s: %w", why, unix.ErrNotSupported)
}
