// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// CensusRequest is what to count.
type CensusRequest struct {
	PIDs []int
	// Cache also counts cached pages of their files that no process has mapped. That maps
	// those pages here for a moment.
	Cache   bool
	Outside bool // other processes that have the files
}

// Census counts the pages of processes by node. The error is what ended it early; what
// was counted until then is returned with it. If no process could be read, that is an
// error: that reading is not permitted, or ErrGone.
func (m *Mover) Census(ctx context.Context, req CensusRequest) (migration.Census, error) {
	return newCounter(m.root, m.pager).census(ctx, req)
}

// counter makes one census:
//
//  1. Find the files: the kind of each, and which other processes have it.
//  2. Go through the present pages of each process, each page once: pages of files go by
//     file and offset, private ones that several mappings share by their frame. A private
//     page with one mapping needs no memory.
//  3. Ask for the node of each page in batches; the first page of a huge page stands for
//     all. Pages without a node for move_pages (the zero page, device memory) are not
//     counted.
//  4. Ask for the cached pages of the files that were not among these.
type counter struct {
	root   unix.Root
	pager  unix.Pager
	buf    unix.Buffer
	kinds  *pagecache.Kinds
	frames *frames // nil: the kernel hides frame numbers
	files  map[pagecache.ID]*countedFile
	all    []*countedFile
	shared pageSet // frames of private pages that were counted
	swap   pageSet // places in swap

	noScan  bool // the kernel has no PAGEMAP_SCAN
	words   []entry
	ask     question
	sums    [][]unit.Bytes // by index of kinds, by node
	foreign [][]unit.Bytes // of sums
	pools   map[pooled]unit.Bytes
	unread  error // of the first process that was not read
	result  migration.Census
	alike   map[string]int // problems: how many more there are like the first
	order   []string
	twice   unit.Bytes // of private pages that may have been counted before
	guessed bool       // the huge pages were estimated
}

// countedFile is a file, or a segment of shared memory.
type countedFile struct {
	pagecache.File
	found  bool // it can be opened
	mapped pageSet
	bytes  unit.Bytes
}

func newCounter(root unix.Root, pager unix.Pager) *counter {
	return &counter{root: root, pager: pager, kinds: pagecache.NewKinds(root), files: map[pagecache.ID]*countedFile{}, shared: newPageSet(), swap: newPageSet(),
		sums: make([][]unit.Bytes, len(migration.Kinds())), foreign: make([][]unit.Bytes, len(migration.Kinds())), pools: map[pooled]unit.Bytes{}, alike: map[string]int{}}
}

func (c *counter) census(ctx context.Context, req CensusRequest) (migration.Census, error) {
	if f, err := openFrames(c.root); err == nil && c.seesFrames() {
		c.frames = f
		defer f.close()
	}
	if err := c.find(req); err != nil { // 1
		return migration.Census{}, err
	}
	err := c.processes(ctx, req.PIDs) // 2, 3
	if err == nil && c.result.Processes == 0 {
		err = c.noneRead()
	}
	if err == nil && req.Cache {
		err = c.cache(ctx) // 4
	}
	return c.finish(req), err
}

// seesFrames reports whether pagemap shows us frame numbers, judged by a page that surely
// has one.
func (c *counter) seesFrames() bool {
	p, err := openPagemap(c.root, os.Getpid())
	if err != nil {
		return false
	}
	defer p.close()
	var one [1]entry
	if n, err := p.read(uint64(addressOf(c)), one[:]); n == 0 || err != nil {
		return false
	}
	_, ok := one[0].pfn()
	return ok
}

func (c *counter) find(req CensusRequest) error {
	files, problems, err := pagecache.Find(c.root, req.PIDs, pagecache.Config{Outside: req.Outside})
	if err != nil {
		return err
	}
	c.result.Problems = problems
	for _, f := range files {
		file := &countedFile{File: f, found: true, mapped: newPageSet()}
		c.all = append(c.all, file)
		c.files[f.ID] = file
		for _, id := range f.Aliases {
			c.files[id] = file
		}
	}
	return nil
}

func (c *counter) processes(ctx context.Context, pids []int) error {
	counted := map[int]bool{}
	for _, pid := range pids {
		if counted[pid] {
			continue
		}
		counted[pid] = true
		err := c.process(ctx, pid)
		c.ask.drop()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("count pages: %w", ctx.Err())
		case errors.Is(err, unix.ErrGone):
		case err != nil:
			if c.result.Unread++; c.unread == nil {
				c.unread = err
				c.result.Problems = slices.Insert(c.result.Problems, 0, fmt.Sprintf("process %d is not counted: %v", pid, err))
			} else {
				c.problem("processes that are not counted", err)
			}
		}
	}
	return nil
}

// noneRead is the error when no process could be read: then nothing was found, and nothing
// is known.
func (c *counter) noneRead() error {
	if c.unread == nil {
		return fmt.Errorf("count pages: the processes have ended, or have no memory (%w)", unix.ErrGone)
	}
	more := ""
	if n := c.result.Unread - 1; n > 0 {
		more = fmt.Sprintf(", nor those of %d more", n)
	}
	return fmt.Errorf("count pages: no process may be read: %w%s", c.unread, more)
}

// problem reports the first of many similar problems.
func (c *counter) problem(what string, err error) {
	if kind := unix.Classify(err); kind != nil {
		what += ", " + kind.Error()
	}
	if _, known := c.alike[what]; known {
		c.alike[what]++
		return
	}
	c.alike[what] = 0
	c.order = append(c.order, what)
	c.result.Problems = append(c.result.Problems, err.Error())
}

// finish adds up.
func (c *counter) finish(req CensusRequest) migration.Census {
	for i, kind := range migration.Kinds() {
		for node, b := range c.sums[i] {
			c.result.Add(kind, node, b)
		}
		for node, b := range c.foreign[i] {
			c.result.AddForeign(kind, node, b)
		}
	}
	for at, b := range c.pools {
		if at.foreign {
			c.result.AddForeignPool(at.page, at.node, b)
		} else {
			c.result.AddPool(at.page, at.node, b)
		}
	}
	for _, f := range c.all {
		if f.bytes > 0 {
			c.result.Files++
		}
	}
	c.result.Foreign = unit.OptOf(c.result.Foreign.Or(0), req.Outside)
	for _, what := range c.order {
		if n := c.alike[what]; n > 0 {
			c.result.Problems = append(c.result.Problems, fmt.Sprintf("%d more problems of this kind: %s", n, what))
		}
	}
	if c.guessed {
		c.result.Problems = append(c.result.Problems, "which private pages are huge is estimated for each mapping (AnonHugePages of smaps): frames are hidden without CAP_SYS_ADMIN")
	}
	if c.twice > 0 {
		c.result.Problems = append(c.result.Problems,
			fmt.Sprintf("%v of private memory that several processes share are counted for each of them: frames are hidden without CAP_SYS_ADMIN", c.twice))
	}
	return c.result
}

// pooled counts the huge pages of the pool.
type pooled struct {
	page    unit.Bytes
	node    int
	foreign bool
}

// count adds what was found on a node: pages of a file, or private ones.
func (c *counter) count(kind migration.Kind, node int, f *countedFile, b, page unit.Bytes) {
	foreign := f != nil && f.Outside
	if f != nil {
		f.bytes += b
	}
	if kind == migration.Hugetlb {
		c.pools[pooled{page, node, false}] += b
		if foreign {
			c.pools[pooled{page, node, true}] += b
		}
		return
	}
	at := slices.Index(migration.Kinds(), kind)
	sum(&c.sums[at], node, b)
	if foreign {
		sum(&c.foreign[at], node, b)
	}
}

func sum(by *[]unit.Bytes, node int, b unit.Bytes) {
	for len(*by) <= node {
		*by = append(*by, 0)
	}
	(*by)[node] += b
}
