// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

const kdamonds = "/sys/kernel/mm/damon/admin/kdamonds/"

// damon has DAMON watch the processes' virtual addresses (sysfs since 5.18, the
// regions that a scheme tried since 6.2).
//
//  1. One kdamond for each process: a tried region does not name its process.
//  2. The first half of the time it splits and merges its regions until they fit.
//  3. Then, once an aggregation, the accessed regions are added up.
//  4. It is switched off and its kdamonds are removed, whatever happens.
//
// After a kill -9 step 4 is missing: the kdamonds stay until another search finds them,
// or CleanLeft. They are identified by their mark, in a bound that no mapping reaches
// (see markOf). The mark also has our process id, and while that process runs they are
// left alone. Until then each costs DAMON's usual bounded overhead, and ends with its
// process. After a kill within the milliseconds before the mark is written, they are off
// and unmarked, and no later run may remove them: the message names them.
type damon struct {
	*search
	on   []kdamond
	aggr time.Duration
}

type kdamond struct{ n, pid int }

// damonMu is held by the one search of this process that uses DAMON.
var damonMu sync.Mutex

const (
	// maxKdamonds bounds their threads, and the length of one round of requests: each
	// answers after an aggregation.
	maxKdamonds = 16
	// looks is the number of checks of a page of each region in an aggregation.
	looks = 20
	// Regions of each process. The most is DAMON's own default: 1,000 of them cost
	// 400,000 checks a second when the whole search takes one, and fewer the longer it
	// takes. The least is ten times its default: the finer they begin, the sooner they
	// fit.
	minRegions, maxRegions = 100, 1000
)

// mark in the upper half of sz/max: "HOME". In bytes it is more than an address
// space has.
const mark = 0x484f4d45

func markOf(pid int) uint64 { return mark<<32 | uint64(uint32(pid)) }

// owner is the pid in a mark; false if the mark is not ours.
func owner(bound uint64) (int, bool) { return int(uint32(bound)), bound>>32 == mark }

func path(n int, file string) string { return fmt.Sprintf("%s%d/%s", kdamonds, n, file) }

func scheme(n int, file string) string { return path(n, "contexts/0/schemes/0/"+file) }

func (d *damon) available() error {
	n, err := d.number(kdamonds + "nr_kdamonds")
	if errors.Is(err, unix.ErrGone) {
		return fmt.Errorf("the kernel has no %s (CONFIG_DAMON_SYSFS, since Linux 5.18): %w", strings.TrimSuffix(kdamonds, "/"), unix.ErrNotSupported)
	}
	if err != nil {
		return err
	}
	if len(d.pids) > maxKdamonds {
		return fmt.Errorf("%d processes would need a kdamond each, and %d are the most: %w", len(d.pids), maxKdamonds, unix.ErrNotSupported)
	}
	for i := range int(min(n, 1<<10)) {
		if why := d.foreign(i); why != "" {
			return fmt.Errorf("another process has set it up, and it is left as it is: %s: %w", why, unix.ErrNotSupported)
		}
	}
	return nil
}

// foreign says why a kdamond is not one that a run of ours left behind.
func (d *damon) foreign(n int) string {
	state, err := d.text(path(n, "state"))
	if err != nil {
		state = "unknown"
	}
	bound, err := d.number(scheme(n, "access_pattern/sz/max"))
	pid, ours := owner(bound)
	switch {
	case err != nil || !ours:
		return fmt.Sprintf("kdamond %d is %s", n, state)
	case pid != os.Getpid() && exists(d.proc(pid, "stat")):
		return fmt.Sprintf("kdamond %d is that of process %d, which looks for hot pages, too", n, pid)
	}
	return ""
}

// CleanLeft removes what killed searches left in DAMON, and returns the number of
// kdamonds. If another process has set up a kdamond, it and all others stay: they are
// counted together, and removed together. A process without the permission to look did
// not leave them.
func CleanLeft(live unix.Live) (int, error) {
	if !live.Valid() {
		return 0, fmt.Errorf("switch DAMON off: only the running kernel can be acted upon (%w)", unix.ErrNotSupported)
	}
	return newSearch(live.Root(), Config{}).cleanLeft()
}

func (l *search) cleanLeft() (int, error) {
	if !damonMu.TryLock() {
		return 0, nil // a search of this process runs: what is there is its own
	}
	defer damonMu.Unlock()
	d := &damon{search: l}
	n, err := d.number(kdamonds + "nr_kdamonds")
	switch {
	case errors.Is(err, unix.ErrGone), errors.Is(err, unix.ErrNotPermitted):
		return 0, nil
	case err != nil || n == 0:
		return 0, err
	case d.available() != nil: // some are not ours, or still in use
		return 0, nil
	}
	return int(n), d.leave()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func (d *damon) find(ctx context.Context) (how unit.Source, err error) {
	if !damonMu.TryLock() {
		return 0, fmt.Errorf("another search of this process uses it: %w", unix.ErrNotSupported)
	}
	defer damonMu.Unlock()
	if err := d.available(); err != nil { // what is there now is ours
		return 0, err
	}
	if err := d.leave(); err != nil { // by a run that was killed
		return 0, err
	}
	if err := d.set(kdamonds+"nr_kdamonds", len(d.pids)); err != nil {
		return 0, err
	}
	defer func() { // 4
		if off := d.leave(); off != nil {
			err = errors.Join(err, fmt.Errorf("it could not be switched off again (write off to each state in %s, then 0 to nr_kdamonds): %w", kdamonds, off))
		}
	}()
	d.aggr = min(max(d.cfg.For/20, 20*time.Millisecond), time.Second)
	if err := d.begin(); err != nil { // 1
		return 0, err
	}
	d.note(tlbNote)
	began := time.Now()
	if err := unix.Sleep(ctx, d.cfg.For/2); err != nil { // 2
		return 0, err
	}
	for { // 3
		if err := d.ask(ctx); err != nil {
			return 0, err
		}
		if time.Since(began) >= d.cfg.For {
			return unit.HowEstimated, nil
		}
	}
}

// begin sets everything up and switches on.
func (d *damon) begin() error {
	for n, pid := range d.pids {
		if err := d.setUp(n, pid); err != nil {
			return err
		}
	}
	for n, pid := range d.pids {
		err := d.set(path(n, "state"), "on")
		if err != nil && !exists(d.proc(pid, "stat")) {
			continue
		}
		if err != nil {
			return err
		}
		d.on = append(d.on, kdamond{n, pid})
	}
	return nil
}

// setUp writes the task of one kdamond. The mark comes as early as possible.
func (d *damon) setUp(n, pid int) error {
	if err := d.setAll([]setting{
		{path(n, "contexts/nr_contexts"), 1},
		{path(n, "contexts/0/schemes/nr_schemes"), 1},
		{scheme(n, "access_pattern/sz/max"), markOf(os.Getpid())},
	}); err != nil {
		return err
	}
	ops, err := d.text(path(n, "contexts/0/avail_operations"))
	if err != nil || !slices.Contains(strings.Fields(ops), "vaddr") {
		return fmt.Errorf("it cannot watch virtual addresses (CONFIG_DAMON_VADDR; it has: %s): %w", strings.Join(strings.Fields(ops), ", "), unix.ErrNotSupported)
	}
	if !exists(d.root.Path(scheme(n, "tried_regions"))) {
		return fmt.Errorf("it does not show which regions were accessed (since Linux 6.2): %w", unix.ErrNotSupported)
	}
	attrs := path(n, "contexts/0/monitoring_attrs/")
	return d.setAll([]setting{
		{path(n, "contexts/0/operations"), "vaddr"},
		{attrs + "intervals/sample_us", max(1, d.aggr.Microseconds()/looks)},
		{attrs + "intervals/aggr_us", d.aggr.Microseconds()},
		{attrs + "intervals/update_us", 10 * d.aggr.Microseconds()},
		{attrs + "nr_regions/min", minRegions},
		{attrs + "nr_regions/max", maxRegions},
		{path(n, "contexts/0/targets/nr_targets"), 1},
		{path(n, "contexts/0/targets/0/pid_target"), pid},
		{scheme(n, "action"), "stat"},
		{scheme(n, "access_pattern/sz/min"), 0},
		{scheme(n, "access_pattern/nr_accesses/min"), 1},
		{scheme(n, "access_pattern/nr_accesses/max"), uint32(1<<32 - 1)},
		{scheme(n, "access_pattern/age/min"), 0},
		{scheme(n, "access_pattern/age/max"), uint32(1<<32 - 1)},
	})
}

// ask has every kdamond report what was accessed in an aggregation; each answers when its
// next one ends. A kdamond whose process ended is off and reports nothing.
func (d *damon) ask(ctx context.Context) error {
	for _, k := range d.on {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := d.set(path(k.n, "state"), "update_schemes_tried_regions")
		if err != nil {
			if state, _ := d.text(path(k.n, "state")); state == "off" || !exists(d.proc(k.pid, "stat")) {
				continue
			}
			return err
		}
		if err := d.regions(k); err != nil {
			return err
		}
	}
	// A process that ended answers at once: do not spin.
	return unix.Sleep(ctx, d.aggr/10)
}

// regions reads tried_regions/0, 1, …: start and end in bytes.
func (d *damon) regions(k kdamond) error {
	dir := scheme(k.n, "tried_regions")
	entries, err := os.ReadDir(d.root.Path(dir))
	if err != nil {
		return unix.Explain("list", dir, "", err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue // total_bytes
		}
		start, err1 := d.number(dir + "/" + e.Name() + "/start")
		end, err2 := d.number(dir + "/" + e.Name() + "/end")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if start < end {
			d.addSpan(k.pid, span{start, end})
		}
	}
	d.found[k.pid] = merged(d.found[k.pid])
	return nil
}

// leave switches off and removes everything that is set up: available found that none of
// it belongs to another process.
func (d *damon) leave() error {
	n, err := d.number(kdamonds + "nr_kdamonds")
	if n == 0 || err != nil {
		return err
	}
	var errs []error
	for i := range int(n) {
		if state, err := d.text(path(i, "state")); err == nil && state == "off" {
			continue
		}
		errs = append(errs, d.set(path(i, "state"), "off"))
	}
	d.on = nil
	if err := d.set(kdamonds+"nr_kdamonds", 0); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return nil // a kdamond that could not be switched off had ended by itself
}

type setting struct {
	path  string
	value any
}

func (d *damon) setAll(all []setting) error {
	for _, s := range all {
		if err := d.set(s.path, s.value); err != nil {
			return err
		}
	}
	return nil
}

func (d *damon) set(path string, value any) error {
	return unix.Explain("write", fmt.Sprintf("%v to %s", value, path), "root", d.write(d.root.Path(path), fmt.Sprint(value)))
}

func (d *damon) text(path string) (string, error) {
	data, err := d.buf.ReadFile(d.root.Path(path))
	return strings.TrimSpace(string(data)), unix.Explain("read", path, "root", err)
}

func (d *damon) number(path string) (uint64, error) {
	data, err := d.buf.ReadFile(d.root.Path(path))
	if err != nil {
		return 0, unix.Explain("read", path, "root", err)
	}
	return procfs.ParseCount(path, data)
}
