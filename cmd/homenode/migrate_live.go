// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/migrate"
	"homenode/internal/lab"
	"homenode/internal/unit"
)

// What is not connected yet; each function says what it waits for:
//
//  1. liveMover: kernel/migrate's Mover with Census and Move as pageMover has them.
//  2. liveFreezable, liveFreeze: owner/cgroup's FreezableFor and Freeze.
//  3. liveHot: kernel/hot's Find.
//  4. migration.EstimateOf: estimate_stub.go there.
var openMigration = func() migrateHost {
	return migrateHost{
		root: kernel.Live().Root(), pid: os.Getpid(), clock: migrateClock,
		mover: liveMover, freezable: liveFreezable, freeze: liveFreeze, hot: liveHot,
	}
}

// migrateClock is the model's in the lab, else the machine's.
func migrateClock() (clock migrate.Clock, note string, err error) {
	m, err := lab.OpenModel("/sys")
	if errors.Is(err, fs.ErrPermission) { // the lab, but not for us
		return nil, "", badInput(fmt.Errorf("%w: move memory in the lab as root", err))
	} else if err != nil {
		return machineClock{time.Now()}, "", nil
	}
	if clock, note, err = m.MigrateClock(); err == nil && clock == nil {
		clock = machineClock{time.Now()}
	}
	return clock, note, err
}

// machineClock is CLOCK_MONOTONIC since it was made.
type machineClock struct{ began time.Time }

func (c machineClock) Now() time.Duration { return time.Since(c.began) }
func (c machineClock) Name() string       { return "CLOCK_MONOTONIC" }
func (c machineClock) How() unit.Source   { return unit.HowMeasured }

func notConnected(what string) error {
	return fmt.Errorf("%s: not connected in this build (%w)", what, kernel.ErrNotSupported)
}

// liveMover becomes migrate.NewMover(kernel.Live(), migrate.Config{Shared: shared, Clock: clock}).
func liveMover(migrate.Clock, bool) (pageMover, error) { return nil, notConnected("move pages") }

// liveFreezable becomes cgroup.FreezableFor of owner/cgroup.
func liveFreezable(kernel.Root, []int) (string, error) {
	return "", notConnected("find the cgroup of processes")
}

// liveFreeze becomes cgroup.Freeze(ctx, kernel.Live(), cgroup.FreezeConfig{…}, id); a
// nil *Frozen must not become a stilled.
func liveFreeze(context.Context, string, string, []string) (stilled, error) {
	return nil, notConnected("freeze")
}

// liveHot becomes hot.Find(ctx, kernel.Live(), pids, hot.Config{For: watch}).
func liveHot(context.Context, []int, time.Duration) (heated, error) {
	return nil, notConnected("find hot pages")
}
