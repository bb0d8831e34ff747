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
	"homenode/internal/kernel/hot"
	"homenode/internal/kernel/migrate"
	"homenode/internal/lab"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
	"homenode/internal/unit"
)

// openMigration is the running kernel; tests have another one.
var openMigration = func() migrateHost {
	return migrateHost{
		root: kernel.Live().Root(), pid: os.Getpid(), clock: migrateClock,
		mover: liveMover, freezable: owner.FreezableFor, freeze: liveFreeze, hot: liveHot,
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

func liveMover(clock migrate.Clock, shared bool) (pageMover, error) {
	m, err := migrate.NewMover(kernel.Live(), migrate.Config{Shared: shared, Clock: clock})
	if err != nil {
		return nil, err
	}
	return censusMover{m}, nil
}

// censusMover counts what it would move.
type censusMover struct{ *migrate.Mover }

func (m censusMover) Census(ctx context.Context, req migrate.Request) (migration.Census, error) {
	return m.Mover.Census(ctx, migrate.CensusRequest{PIDs: req.PIDs, Cache: req.Cache, Outside: true})
}

// liveFreeze gives no *Frozen that is nil as a stilled.
func liveFreeze(ctx context.Context, id, state string, directOwners []string) (stilled, error) {
	f, err := owner.Freeze(ctx, kernel.Live(), owner.FreezeConfig{StateDir: state, DirectOwners: directOwners}, id)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func liveHot(ctx context.Context, pids []int, watch time.Duration) (heated, error) {
	return hot.Find(ctx, kernel.Live(), pids, hot.Config{For: watch})
}
