// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

type moveCase struct {
	pair
	huge bool
}

// moveKey uses huge or not: the size of small pages is known only when they are moved.
func moveKey(m profile.Migration) moveCase {
	return moveCase{pair{m.From, m.To}, m.PageSize >= hugePage}
}

// page is the kernel's small page.
func (b *bench) page() unit.Bytes { return b.m.PageSize.Or(pageSize) }

// pageOf is the page size of a case, as far as it is known before.
func (b *bench) pageOf(c moveCase) unit.Bytes {
	if c.huge {
		return hugePage
	}
	return b.page()
}

// planMigration: pages are moved between each pair of nodes, to the nearest and the
// farthest of each node first.
func planMigration(b *bench) plan {
	o := offers{part: profile.Migrating}
	if len(b.columns()) < 2 {
		o.skip("", errors.New("one node has memory: there is no other node to move pages to"))
		return o.plan
	}
	order := b.moves()
	got := figuresOf(&b.profile.Migration, moveKey, order)
	for _, c := range order {
		o.offer(fmt.Sprintf("%v, pages of %v", c.pair, b.pageOf(c)), got.has(c), func() (piece, error) {
			move, err := b.move(c)
			return piece{
				move: &move,
				read: func(out outcome) ([]float64, error) { return readMove(out.moved, b.pageOf(c)) },
				keep: func(v [][]float64) {
					got.put(profile.Migration{From: c.from, To: c.to, PageSize: unit.Bytes(v[2][0]), PerPage: profile.FigureOf(v[0]), Rate: profile.FigureOf(v[1])})
				},
			}, err
		})
	}
	return o.done()
}

// readMove gives ns a page, bytes/s, and the size of a page.
func readMove(m membench.Moved, size unit.Bytes) ([]float64, error) {
	switch {
	case m.Pages <= 0 || m.Elapsed <= 0:
		return nil, fmt.Errorf("no page was moved, %d failed", m.Failed)
	case m.Size < size:
		return nil, errors.New("the kernel gave no huge pages")
	}
	pages := float64(m.Pages)
	return []float64{float64(m.Elapsed) / pages, pages * float64(m.Size) / m.Elapsed.Seconds(), float64(m.Size)}, nil
}

// moves are the cases, the most telling first.
func (b *bench) moves() []moveCase {
	var first, rest []pair
	for _, from := range b.columns() {
		var others []int
		for _, to := range b.m.Nearest(from) {
			if to != from && b.memory().Has(to) {
				others = append(others, to)
			}
		}
		for i, to := range others {
			if i == 0 || i == len(others)-1 {
				first = append(first, pair{from, to})
			} else {
				rest = append(rest, pair{from, to})
			}
		}
	}
	var all []moveCase
	for _, some := range [][]pair{first, rest} {
		for _, huge := range b.kinds() {
			for _, p := range some {
				all = append(all, moveCase{p, huge})
			}
		}
	}
	return all
}

// kinds are the pages that are moved: small, then huge ones. Kernels with larger small
// pages have huge pages that are too large for a test: 512 MiB for 64 KiB.
func (b *bench) kinds() []bool {
	if b.huge && b.page() == pageSize {
		return []bool{false, true}
	}
	return []bool{false}
}

// move is 4096 small pages (fewer where they are larger) or 32 huge ones; a quarter of
// that where time is a model's, which is some fifty times slower.
func (b *bench) move(c moveCase) (membench.Move, error) {
	bytes := 16 * unit.MiB
	if c.huge {
		bytes = 64 * unit.MiB
	}
	if b.how == unit.HowModelled {
		bytes /= 4
	}
	for _, node := range []int{c.from, c.to} {
		if _, err := b.room(node, bytes, bytes); err != nil {
			return membench.Move{}, err
		}
	}
	cpu, ok := b.nearCPU(c.from)
	if !ok {
		return membench.Move{}, errors.New("no CPU may be used")
	}
	return membench.Move{From: c.from, To: c.to, Bytes: bytes, Huge: c.huge, CPU: cpu}, nil
}
