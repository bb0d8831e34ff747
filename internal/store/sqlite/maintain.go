// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// Maintain forgets what is older than the retention says. Rows are rolled up when they come.
//
//  1. Questions no longer read what will go.
//  2. Rows go an hour at a time, so that Add waits shortly.
//  3. Keys of batches go with the minutes, and series with their last row.
func (s *Store) Maintain(ctx context.Context, now time.Time, keep store.Retention) error {
	cut := func(keep time.Duration) int64 { return tables.Bucket(tables.Millis(now.Add(-keep)), time.Hour) }
	cuts := tables.Kept{cut(keep.Raw), cut(keep.Minutes), cut(keep.Hours)}
	for level, at := range cuts {
		if err := s.forget(ctx, "UPDATE kept SET at = max(at, ?) WHERE level = ?", at, level); err != nil {
			return err
		}
	}
	for _, kind := range []string{"windows", "nodes"} {
		for level, at := range cuts {
			if err := s.forgetRows(ctx, kind+tables.Level(level).Suffix()+"_rows", at); err != nil {
				return err
			}
		}
	}
	if err := s.forget(ctx, "DELETE FROM events WHERE at < ?", cut(keep.Events)); err != nil {
		return err
	}
	if err := s.forget(ctx, "DELETE FROM batches WHERE at < ?", cut(max(keep.Raw, keep.Minutes))); err != nil {
		return err
	}
	if err := s.forgetSeries(ctx); err != nil {
		return err
	}
	return s.forget(ctx, "PRAGMA optimize")
}

func (s *Store) forget(ctx context.Context, statement string, args ...any) error {
	if _, err := s.write.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("maintain status database %s: %w", s.path, err)
	}
	return nil
}

// forgetRows goes hour by hour, from the oldest row on.
func (s *Store) forgetRows(ctx context.Context, rows string, until int64) error {
	for {
		var first sql.NullInt64
		if err := s.read.QueryRowContext(ctx, "SELECT min(id) FROM "+rows).Scan(&first); err != nil {
			return fmt.Errorf("maintain status database %s: %w", s.path, err)
		}
		at := first.Int64 >> seriesBits
		if !first.Valid || at >= until {
			return nil
		}
		if err := s.forget(ctx, "DELETE FROM "+rows+" WHERE id < ?", idOf(min(until, at+time.Hour.Milliseconds()))); err != nil {
			return err
		}
	}
}

// forgetSeries forgets series without rows. Hours are kept longest, but a raw row may be new.
func (s *Store) forgetSeries(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("maintain status database %s: %w", s.path, ctx.Err())
	}
	defer func() { <-s.turn }()
	clear(s.ids)
	for rows, dictionary := range dictionaries {
		none := ""
		for level := tables.Hours; level >= tables.Raw; level-- {
			none += fmt.Sprintf(" AND NOT EXISTS (SELECT 1 FROM %s%s_rows r WHERE r.series = d.id)", rows, level.Suffix())
		}
		if err := s.forget(ctx, "DELETE FROM "+dictionary+" AS d WHERE 1"+none); err != nil {
			return err
		}
	}
	return nil
}
