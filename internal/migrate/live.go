// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/freeze"
	"homenode/internal/kernel/hotness"
	"homenode/internal/kernel/migrate"
	"homenode/internal/lab/model"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
)

// Live is a Host on the running kernel.
func Live() Host {
	return Host{
		Root: kernel.Live().Root(), PID: os.Getpid(), Clock: liveClock,
		Mover: liveMover, Freezable: owner.FreezableFor, Freeze: liveFreeze, IsFrozen: liveIsFrozen, Hot: liveHot,
	}
}

// liveClock is the model's clock in the lab, else the machine's.
func liveClock() (clock migrate.Clock, note string, err error) {
	m, err := model.Open("/sys")
	if errors.Is(err, fs.ErrPermission) { // the lab, but not permitted for this user
		return nil, "", exit.BadInput(fmt.Errorf("%w: move memory in the lab as root", err))
	} else if err != nil {
		return migrate.Monotonic(), "", nil
	}
	if clock, note, err = m.MigrateClock(); err == nil && clock == nil {
		clock = migrate.Monotonic()
	}
	return clock, note, err
}

func liveMover(clock migrate.Clock, shared bool) (Mover, error) {
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

// liveFreeze never returns a nil *Frozen as a Stilled.
func liveFreeze(ctx context.Context, id string, cfg owner.FreezeConfig) (Stilled, error) {
	f, err := owner.Freeze(ctx, kernel.Live(), cfg, id)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// liveIsFrozen asks whether a cgroup is frozen now, by any process.
func liveIsFrozen(id string) (bool, error) {
	layout, err := cgroup.Find(kernel.Live().Root())
	if err != nil {
		return false, err
	}
	f, err := freeze.Find(kernel.Live(), layout, id)
	if err != nil {
		return false, err
	}
	state, err := f.State()
	return !state.Thawed(), errors.Join(err, f.Close())
}

func liveHot(ctx context.Context, pids []int, watch time.Duration) (Heated, error) {
	return hotness.Find(ctx, kernel.Live(), pids, hotness.Config{For: watch})
}
