// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// plan is the work of a part.
type plan struct {
	// blocks are measured one after the other; inside one the repeats of its pieces are
	// interleaved, so that drift affects all of them equally. When a measurement is
	// interrupted, one block is lost.
	blocks  [][]piece
	skipped []profile.Skipped    // those that need not be tried
	have    int                  // pieces that are in the profile already
	enough  func(block int) bool // after a block: the others are not needed; may be nil
	first   func() bool          // after the first block: the rest is useful; may be nil
	finish  func()               // after the last; may be nil
}

// piece is the smallest unit of measurement: a few jobs one after the other, or one
// move of pages.
type piece struct {
	what string // for Skipped: "node 0 to node 1"
	once bool   // measured once, with any number of repeats: it takes long
	jobs []membench.Job
	// again, if not nil, makes the jobs of a repeat, counted from 0: as many as jobs,
	// which are those of the first.
	again func(repeat int) []membench.Job
	move  *membench.Move
	// read makes the columns of one repeat; NaN is unknown.
	read func(outcome) ([]float64, error)
	// keep puts the repeats, by column, into the profile.
	keep func(columns [][]float64)
	// fail, if not nil, records in the profile that it could not be measured.
	fail func(why string)
}

// outcome is the machine's results of one repeat.
type outcome struct {
	jobs  []membench.Result
	moved membench.Moved
}

// blockSize is the number of pieces with interleaved repeats. More spreads drift over
// more figures; less loses less when a measurement is interrupted.
const blockSize = 16

// inBlocks divides a list of pieces.
func inBlocks(pieces []piece) [][]piece { return slices.Collect(slices.Chunk(pieces, blockSize)) }

// saveEvery is the interval between saves inside a block: a kill loses this much. More
// often takes longer than the measurement, if there are many nodes.
const saveEvery = time.Second

// errBudget ends a part whose time is up; what it has is kept.
var errBudget = errors.New("budget used up")

// errFirst ends a part whose first block failed; Skipped says why.
var errFirst = errors.New("the figure that the rest is compared with could not be measured")

// part measures one part, or records why not.
//
//  1. The continued profile's skips of this part are removed.
//  2. The budget decides the repeats and the time of the part, or skips it.
//  3. Blocks, until all are measured or enough is known.
//  4. Done, unless no piece of it could be measured.
func (b *bench) part(ctx context.Context, part profile.Part) error {
	b.profile.Skipped = slices.DeleteFunc(slices.Clone(b.profile.Skipped), func(s profile.Skipped) bool { return s.Part == part }) // 1
	b.free = map[int]unit.Bytes{}
	pl := b.plan(part)
	b.profile.Skipped = append(b.profile.Skipped, pl.skipped...)
	if len(pl.blocks) == 0 {
		return b.noBlocks(part, pl)
	}
	later, why := b.later(), ""
	if b.repeats, why = b.afford(pl, later); why != "" { // 2
		b.skip(part, "", why)
		return b.save()
	}
	b.watch.begin(b, part)
	r := runner{bench: b, part: part, total: pl.runs(b.repeats), length: b.estimate(b.repeats, pl), later: b.estimate(b.repeats, later...)}
	err := r.blocks(ctx, pl) // 3
	b.watch.end(b, part)
	if errors.Is(err, errSave) {
		return err // it would fail again
	}
	if errors.Is(err, errFirst) {
		err = nil
	} else if errors.Is(err, errBudget) {
		what := "the rest"
		if r.kept+pl.have == 0 {
			what = ""
		}
		b.skip(part, what, b.usedUp())
		err = nil
	} else if err == nil && (r.kept > 0 || pl.have > 0) { // 4
		b.complete(part, pl)
	}
	return errors.Join(err, b.save())
}

// noBlocks ends a part without anything to run.
func (b *bench) noBlocks(part profile.Part, pl plan) error {
	if pl.have > 0 {
		b.complete(part, pl)
	} else if len(pl.skipped) == 0 {
		b.skip(part, "", "this machine has nothing to measure in this part")
	}
	return b.save()
}

func (b *bench) complete(part profile.Part, pl plan) {
	b.profile.Done = append(slices.Clone(b.profile.Done), part)
	if pl.finish != nil {
		pl.finish()
	}
}

func (b *bench) skip(part profile.Part, what, why string) {
	b.profile.Skipped = append(slices.Clone(b.profile.Skipped), profile.Skipped{Part: part, What: what, Why: why})
}

// runs is the number of runs of pieces in a plan.
func (pl plan) runs(repeats int) int {
	n := 0
	for _, block := range pl.blocks {
		for _, p := range block {
			n += p.runs(repeats)
		}
	}
	return n
}

func (p piece) runs(repeats int) int {
	if p.once {
		return 1
	}
	return repeats
}

// runner runs the pieces of one part.
type runner struct {
	*bench
	part        profile.Part
	done, total int
	kept        int
	length      time.Duration // estimates: of this part, of the later ones
	later       time.Duration
}

func (r *runner) blocks(ctx context.Context, pl plan) error {
	for i, block := range pl.blocks {
		if err := r.block(ctx, block, i); err != nil {
			return err
		}
		if i == 0 && pl.first != nil && !pl.first() {
			return errFirst
		}
		if pl.enough != nil && pl.enough(i) {
			return nil
		}
	}
	return nil
}

// block runs the repeats of its pieces, interleaved. When the budget is used up, pieces
// keep their repeats so far; when ctx ends, only complete pieces stay.
func (r *runner) block(ctx context.Context, pieces []piece, number int) error {
	values := make([][][]float64, len(pieces))
	left := make([]int, len(pieces))
	for i, p := range pieces {
		left[i] = p.runs(r.repeats)
	}
	for _, run := range experiment.Order(len(pieces), r.repeats, r.o.Seed+uint64(number)+hash(r.part)) {
		i := run.Arm
		if left[i] == 0 {
			continue
		}
		r.tell()
		v, err := r.piece(ctx, pieces[i], len(values[i]))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errBudget):
			return errors.Join(err, r.keepAll(pieces, values, left))
		case err != nil && len(values[i]) == 0:
			r.done, left[i] = r.done+left[i], 0
			r.failed(pieces[i], err)
			continue
		}
		r.done, left[i] = r.done+1, left[i]-1
		if err == nil { // otherwise one repeat less
			values[i] = append(values[i], v)
		}
		if left[i] == 0 {
			if err := r.keep(pieces[i], values[i]); err != nil {
				return err
			}
		}
	}
	r.tell()
	if r.unsaved {
		return r.save()
	}
	return nil
}

// keepAll keeps the repeats of incomplete pieces.
func (r *runner) keepAll(pieces []piece, values [][][]float64, left []int) error {
	for i, p := range pieces {
		if left[i] > 0 && len(values[i]) > 0 {
			if err := r.keep(p, values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) keep(p piece, repeats [][]float64) error {
	columns := make([][]float64, len(repeats[0]))
	for _, row := range repeats {
		for c, v := range row {
			columns[c] = append(columns[c], v)
		}
	}
	p.keep(columns)
	r.kept++
	r.some, r.unsaved = true, true
	if r.o.Now().Sub(r.saved) < saveEvery {
		return nil
	}
	return r.save()
}

func (r *runner) failed(p piece, err error) {
	if p.fail != nil {
		p.fail(err.Error())
		return
	}
	r.skip(r.part, p.what, err.Error())
}

// piece runs one repeat.
func (r *runner) piece(ctx context.Context, p piece, repeat int) ([]float64, error) {
	var out outcome
	for _, job := range p.of(repeat) {
		if r.overBudget() {
			return nil, errBudget
		}
		begin := r.o.Now()
		result, err := r.prober.Run(ctx, job)
		took := r.o.Now().Sub(begin)
		r.watch.ran(took, threadsOf(job))
		if err != nil {
			return nil, err
		}
		if len(result.Threads) != len(job.Threads) {
			return nil, fmt.Errorf("run job: %d threads answered, want %d", len(result.Threads), len(job.Threads))
		}
		r.cost.learn(r.jobSize(r.made, job), took)
		r.watch.counted(job, result)
		out.jobs = append(out.jobs, result)
	}
	if p.move != nil {
		if r.overBudget() {
			return nil, errBudget
		}
		begin := r.o.Now()
		var err error
		out.moved, err = r.prober.Move(ctx, *p.move)
		r.watch.ran(r.o.Now().Sub(begin), 1)
		r.cost.learn(moveSize(*p.move), r.o.Now().Sub(begin))
		if err != nil {
			return nil, err
		}
	}
	return p.read(out)
}

func (p piece) of(repeat int) []membench.Job {
	if p.again == nil {
		return p.jobs
	}
	return p.again(repeat)
}

// threadsOf is the number of CPUs that a job keeps busy.
func threadsOf(j membench.Job) int {
	n := len(j.Threads)
	for _, t := range j.Threads {
		if t.Work == membench.Transfer { // its owner's, too
			n++
		}
	}
	return n
}

func (r *runner) tell() {
	if r.o.Progress == nil {
		return
	}
	remaining := r.later
	if r.total > 0 {
		remaining += time.Duration(float64(r.length) * float64(r.total-r.done) / float64(r.total))
	}
	if r.o.Budget > 0 {
		remaining = max(0, min(remaining, r.o.Budget-r.elapsed()))
	}
	r.o.Progress(Progress{Part: r.part, Done: r.done, Total: r.total, Elapsed: r.elapsed(), Remaining: remaining})
}

func hash(part profile.Part) uint64 {
	h := fnv.New64a()
	h.Write([]byte(part))
	return h.Sum64()
}
