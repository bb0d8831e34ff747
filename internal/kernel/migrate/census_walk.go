// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

const (
	// hugeChunk is a transparent huge page, bytes: of x86-64, and of arm64 with pages of
	// 4 KiB. A larger one is seen as several of these.
	hugeChunk = 2 << 20
	// wordsAtOnce is the number of pages in one read of pagemap: 512 KiB, 256 MiB of
	// addresses. In a read of holes, copying dominates.
	wordsAtOnce = 1 << 16
)

// countedArea is a mapping of the process that is being counted.
type countedArea struct {
	mapping
	size  uint64       // of its pages, bytes
	file  *countedFile // nil: none, or none that counts
	guess *spread
}

// process counts the pages of one process.
func (c *counter) process(ctx context.Context, pid int) error {
	areas, err := c.areas(pid)
	if err != nil || len(areas) == 0 {
		return err
	}
	p, err := openPagemap(c.root, pid)
	if err != nil {
		// ESRCH: it is ending, and has released its memory (proc_mem_open in
		// fs/proc/base.c). A kernel without the file returns ENOENT.
		if errors.Is(err, sys.ESRCH) || errors.Is(err, unix.ErrGone) && c.gone(pid) {
			return err
		}
		c.byMapping(areas)
		c.result.Processes++
		c.problem("counted by mapping", fmt.Errorf("process %d is counted by mapping, and pages that it shares with others once for each: %w", pid, err))
		return nil
	}
	defer p.close()
	huge, err := c.hugeByStart(pid)
	if err != nil {
		return err
	}
	for i := range areas {
		if err := c.area(ctx, p, pid, &areas[i], huge); err != nil {
			return err
		}
	}
	if c.noScan {
		c.swappedByStatus(pid)
	}
	if err := c.answer(pid); err != nil {
		return err
	}
	c.result.Processes++
	return nil
}

// gone reports that the process no longer exists, as opposed to a kernel without the
// file.
func (c *counter) gone(pid int) bool {
	_, err := c.buf.ReadFile(c.proc(pid, "stat"))
	return unix.Classify(err) == unix.ErrGone
}

func (c *counter) proc(pid int, file string) string {
	return c.root.Path(fmt.Sprintf("/proc/%d/%s", pid, file))
}

// hugeByStart is how much of each mapping is huge, where frames are hidden.
func (c *counter) hugeByStart(pid int) (map[uint64]unit.Bytes, error) {
	if c.frames != nil {
		return nil, nil
	}
	areas, err := procfs.ReadSmaps(&c.buf, c.proc(pid, "smaps"), procfs.MapsBudget())
	if err != nil {
		return nil, unix.Explain("read", c.proc(pid, "smaps"), "CAP_SYS_PTRACE", err)
	}
	by := map[uint64]unit.Bytes{}
	for _, a := range areas {
		if a.AnonHuge > 0 {
			by[a.Start] = a.AnonHuge
		}
	}
	return by, nil
}

// areas are the mappings of a process. A mapping that numa_maps lacks, or shows
// differently, is new or has changed: its pages are still read.
func (c *counter) areas(pid int) ([]countedArea, error) {
	mapped, err := readMappings(&c.buf, c.proc(pid, "numa_maps"), c.proc(pid, "maps"))
	if err != nil {
		return nil, err
	}
	areas := make([]countedArea, 0, len(mapped))
	for _, m := range mapped {
		if m.unsized {
			c.problem("mappings that are not counted", fmt.Errorf("mapping %#x-%#x of process %d changed while it was read, and may be of huge pages: not counted", m.Start, m.End, pid))
			continue
		}
		area := countedArea{mapping: m, size: uint64(unix.PageSize()), file: c.fileOf(pid, m.Area, m.pages.Huge)}
		if m.pages.Huge {
			area.size = m.pages.PageSize
		}
		areas = append(areas, area)
	}
	return areas, nil
}

// fileOf is the file of a mapping. A file that was not found, because it is new or
// reading it is not permitted, is classified by its name and its file system.
func (c *counter) fileOf(pid int, a procfs.Area, huge bool) *countedFile {
	if !a.HasFile() {
		return nil
	}
	id := pagecache.IDOf(c.root, pid, a)
	if f, known := c.files[id]; known {
		return f
	}
	kind := c.kinds.Of(pid, a)
	if huge {
		kind = migration.Hugetlb
	}
	var f *countedFile
	if kind != "" {
		f = &countedFile{File: pagecache.File{ID: id, Name: a.Path, Kind: kind}, mapped: newPageSet()}
		c.all = append(c.all, f)
	}
	c.files[id] = f
	return f
}

// area counts one mapping.
func (c *counter) area(ctx context.Context, p *pagemap, pid int, a *countedArea, huge map[uint64]unit.Bytes) error {
	if c.frames == nil && huge[a.Start] > 0 && !a.pages.Huge {
		a.guess, c.guessed = &spread{}, true
	}
	err := c.present(p, a, func(from, to uint64) error {
		if a.pages.Huge {
			return c.poolPages(ctx, p, pid, a, from, to)
		}
		return c.smallPages(ctx, p, pid, a, from, to)
	})
	if err != nil || a.guess == nil {
		return err
	}
	if err := c.answer(pid); err != nil {
		return err
	}
	a.guess.split(c, huge[a.Start], unit.Bytes(a.size))
	return nil
}

// present returns the parts of a mapping that have pages: by PAGEMAP_SCAN, or all of it
// unless numa_maps is sure that there are none.
func (c *counter) present(p *pagemap, a *countedArea, each func(from, to uint64) error) error {
	if !c.noScan {
		err := p.scan(a.Start, a.End, each)
		if !errors.Is(err, errNoScan) {
			return err
		}
		c.noScan = true
	}
	if a.sure && a.pages.Pages() == 0 {
		return nil
	}
	return each(a.Start, a.End)
}

// poolPages counts huge pages of the pool: the first word of each is enough.
func (c *counter) poolPages(ctx context.Context, p *pagemap, pid int, a *countedArea, from, to uint64) error {
	var one [1]entry
	for at := from / a.size * a.size; at < to; at += a.size {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := p.read(at, one[:]); err != nil {
			return err
		}
		if one[0].present() {
			if err := c.page(pid, a, at, one[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// smallPages counts what is between two addresses. Without PAGEMAP_SCAN it stops at the
// last page that numa_maps knows: behind it there may be a TiB of holes.
func (c *counter) smallPages(ctx context.Context, p *pagemap, pid int, a *countedArea, from, to uint64) error {
	if c.words == nil {
		c.words = make([]entry, wordsAtOnce)
	}
	for at, seen := from, uint64(0); at < to; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end := min(to, (at+wordsAtOnce*a.size)/hugeChunk*hugeChunk) // so that no huge page is cut in two
		if end <= at {
			end = to
		}
		n, err := p.read(at, c.words[:min(wordsAtOnce, (end-at)/a.size)])
		if err != nil || n == 0 {
			return err
		}
		found, err := c.run(pid, a, at, c.words[:n])
		if err != nil {
			return err
		}
		at += uint64(n) * a.size
		if seen += found; c.noScan && a.sure && seen >= a.pages.Pages() {
			return nil
		}
	}
	return nil
}

// run counts consecutive pages, and returns how many of them numa_maps must have, too.
// That excludes the zero page, which has no owner and, if huge, looks like a page of a
// file.
func (c *counter) run(pid int, a *countedArea, start uint64, words []entry) (seen uint64, err error) {
	perHuge := int(hugeChunk / a.size)
	for i := 0; i < len(words); {
		e, at := words[i], start+uint64(i)*a.size
		if e == 0 {
			i++
			continue
		}
		if e.present() && (e.exclusive() || e.file() && a.file != nil) {
			seen++
		}
		if at%hugeChunk == 0 && i+perHuge <= len(words) && c.isTHP(words[i:i+perHuge]) {
			i += perHuge
			if e.exclusive() {
				seen += uint64(perHuge - 1)
			}
			if c.freshFrames(e, perHuge) {
				err = c.askAbout(pid, at, asked{kind: migration.THP, bytes: hugeChunk})
			}
		} else {
			i++
			err = c.page(pid, a, at, e)
		}
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// isTHP reports that these are one huge page: private, on consecutive frames, and marked
// so by the kernel. Smaller ones of several pages (since 6.8) have a head in the middle
// of the chunk.
func (c *counter) isTHP(words []entry) bool {
	first, ok := words[0].pfn()
	if !ok || c.frames == nil || first%uint64(len(words)) != 0 {
		return false
	}
	for i, e := range words {
		if pfn, _ := e.pfn(); e.file() || !e.present() || pfn != first+uint64(i) {
			return false
		}
	}
	head, err1 := c.frames.flags(first)
	middle, err2 := c.frames.flags(first + uint64(len(words)/2))
	return err1 == nil && err2 == nil && head&frameTHP != 0 && middle&frameTHP != 0 && middle&frameTail != 0
}

// freshFrames reports that a huge page was not counted yet.
func (c *counter) freshFrames(e entry, n int) bool {
	if e.exclusive() {
		return true
	}
	pfn, _ := e.pfn()
	fresh := c.shared.add(pfn)
	for i := 1; i < n; i++ {
		c.shared.add(pfn + uint64(i))
	}
	return fresh
}

// page counts one page, unless it was counted already.
func (c *counter) page(pid int, a *countedArea, at uint64, e entry) error {
	switch {
	case e.swapped():
		c.swapped(e, a)
		return nil
	case !e.present():
		return nil
	case e.file():
		if a.file == nil || !a.file.mapped.add((at-a.Start+a.Offset)/uint64(unix.PageSize())) {
			return nil
		}
		return c.askAbout(pid, at, asked{kind: a.file.Kind, file: a.file, bytes: unit.Bytes(a.size)})
	case !e.exclusive():
		if pfn, ok := e.pfn(); ok && !c.shared.add(pfn) {
			return nil
		} else if !ok {
			c.twice += unit.Bytes(a.size)
		}
	}
	kind := migration.Anon
	if a.pages.Huge {
		kind = migration.Hugetlb
	}
	return c.askAbout(pid, at, asked{kind: kind, bytes: unit.Bytes(a.size), guess: a.guess})
}

// swapped counts a page in swap, by its place there where that is shown.
func (c *counter) swapped(e entry, a *countedArea) {
	place := uint64(e) & (1<<55 - 1)
	if !c.noScan && (place == 0 || c.swap.add(place)) {
		c.result.Swapped += unit.Bytes(a.size)
	}
}

// swappedByStatus is the kernel's own sum. Without PAGEMAP_SCAN, mappings that have only
// swapped pages are not gone through.
func (c *counter) swappedByStatus(pid int) {
	st, err := unix.Parsed(&c.buf, c.proc(pid, "status"), procfs.ParseTaskStatus)
	if err == nil {
		c.result.Swapped += st.Swap.Or(0)
	}
}

// byMapping counts by numa_maps: one kind for each mapping, its private pages on its
// nodes in proportion.
func (c *counter) byMapping(areas []countedArea) {
	for _, a := range areas {
		pages := a.pages.Pages()
		if pages == 0 || a.HasFile() && a.file == nil {
			continue
		}
		for _, n := range a.pages.Nodes {
			page := unit.Bytes(a.pages.PageSize)
			all := unit.Bytes(n.Pages) * page
			private := unit.Bytes(uint64(float64(a.pages.Anon)*float64(n.Pages)/float64(pages)) * a.pages.PageSize)
			switch {
			case a.pages.Huge:
				c.count(migration.Hugetlb, n.Node, a.file, all, page)
			case a.file == nil:
				c.count(migration.Anon, n.Node, nil, all, page)
			default:
				c.count(migration.Anon, n.Node, nil, private, page)
				c.count(a.file.Kind, n.Node, a.file, all-private, page)
			}
		}
	}
}
