// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"errors"
	"os"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// referenced clears the accessed bits of the processes' pages and checks after a while
// which mappings have some again (/proc/PID/clear_refs since 2.6.22; "1" is for all
// pages). Bits of other processes that share a page stay as they are
// (clear_refs_pte_range in fs/proc/task_mmu.c); the page's own referenced flag is
// cleared.
type referenced struct{ *search }

func (r *referenced) available() error {
	_, err := os.Stat(r.proc(r.pids[0], "clear_refs"))
	return unix.Explain("look for", r.proc(r.pids[0], "clear_refs"), "", err)
}

func (r *referenced) find(ctx context.Context) (unit.Source, error) {
	for _, pid := range r.pids {
		path := r.proc(pid, "clear_refs")
		err := unix.Explain("write", path, "the process's user, or CAP_DAC_OVERRIDE", r.write(path, "1"))
		if errors.Is(err, unix.ErrGone) {
			continue
		}
		if err != nil {
			return 0, err
		}
	}
	r.note("clear_refs made the kernel forget which pages of the processes were in use: reclaim uses that, and may take some of them first.")
	r.note(tlbNote)
	if err := r.wait(ctx, r.cfg.For); err != nil {
		return 0, err
	}
	untold := unit.Bytes(0)
	for _, pid := range r.pids {
		areas, err := r.smaps(pid)
		if errors.Is(err, unix.ErrGone) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, a := range areas {
			untold += a.HugeTLB
			if share, ok := unit.RatioOf(float64(a.Referenced), float64(a.RSS)).Get(); ok && a.Referenced > 0 && float64(share) >= r.cfg.Share {
				r.addSpan(pid, span{a.Start, a.End})
			}
		}
	}
	if untold > 0 {
		r.note("%v in hugetlbfs pages have no referenced bits: they count as cold.", untold)
	}
	return unit.HowMeasured, nil
}
