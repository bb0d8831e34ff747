// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/probe"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

type moveCase struct {
	pair
	size unit.Bytes // of a page
}

func moveKey(m profile.Migration) moveCase { return moveCase{pair{m.From, m.To}, m.PageSize} }

// planMigration: pages are moved between every two nodes, the nearest and the
// farthest of each node first.
func planMigration(b *bench) plan {
	var pl plan
	order := b.moves()
	if len(b.columns()) < 2 {
		pl.skipped = []profile.Skipped{{Part: profile.Migrating, Why: "one node has memory: there is nowhere to move pages to"}}
		return pl
	}
	var pieces []piece
	rank, have := ranks(order), keysOf(b.profile.Migration, moveKey)
	for _, c := range order {
		if have[c] {
			pl.have++
			continue
		}
		what := fmt.Sprintf("%v, pages of %v", c.pair, c.size)
		move, err := b.move(c)
		if err != nil {
			pl.skipped = append(pl.skipped, profile.Skipped{Part: profile.Migrating, What: what, Why: err.Error()})
			continue
		}
		pieces = append(pieces, piece{
			what: what, move: &move,
			read: func(out outcome) ([]float64, error) { return readMove(out.moved, c.size) },
			keep: func(v [][]float64) {
				m := profile.Migration{From: c.from, To: c.to, PageSize: c.size, PerPage: profile.FigureOf(v[0]), Rate: profile.FigureOf(v[1])}
				b.profile.Migration = putRanked(b.profile.Migration, m, moveKey, rank)
			},
		})
	}
	pl.blocks = inBlocks(pieces)
	return pl
}

// readMove gives ns a page and bytes/s.
func readMove(m probe.Moved, size unit.Bytes) ([]float64, error) {
	switch {
	case m.Pages <= 0 || m.Elapsed <= 0:
		return nil, fmt.Errorf("no page was moved, %d failed", m.Failed)
	case m.Size < size:
		return nil, errors.New("the kernel gave no huge pages")
	}
	pages := float64(m.Pages)
	return []float64{float64(m.Elapsed) / pages, pages * float64(m.Size) / m.Elapsed.Seconds()}, nil
}

// moves are the cases in the order of their worth.
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
		for _, size := range b.pageSizes() {
			for _, p := range some {
				all = append(all, moveCase{p, size})
			}
		}
	}
	return all
}

func (b *bench) pageSizes() []unit.Bytes {
	if b.huge {
		return []unit.Bytes{pageSize, hugePage}
	}
	return []unit.Bytes{pageSize}
}

// move is 4096 small pages or 32 huge ones; a quarter of that where time is a
// model's, which is some fifty times slower.
func (b *bench) move(c moveCase) (probe.Move, error) {
	bytes := 16 * unit.MiB
	if c.size == hugePage {
		bytes = 64 * unit.MiB
	}
	if b.how == unit.HowModelled {
		bytes /= 4
	}
	for _, node := range []int{c.from, c.to} {
		if _, err := b.room(node, bytes, bytes); err != nil {
			return probe.Move{}, err
		}
	}
	cpu, ok := b.nearCPU(c.from)
	if !ok {
		return probe.Move{}, errors.New("no CPU may be used")
	}
	return probe.Move{From: c.from, To: c.to, Bytes: bytes, Huge: c.size == hugePage, CPU: cpu}, nil
}
