// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"fmt"
	"time"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// Maintain forgets what is older than the retention says. Rows are rolled up when they come.
//
//  1. Questions no longer read what will go.
//  2. Rows go a series at a time, so that Add waits shortly.
//  3. Keys of batches go after a month, series after their last row.
func (s *Store) Maintain(ctx context.Context, now time.Time, keep store.Retention) error {
	cut := func(keep time.Duration) int64 { return tables.Bucket(tables.Millis(now.Add(-keep)), time.Hour) }
	cuts := tables.Kept{cut(keep.Raw), cut(keep.Minutes), cut(keep.Hours)}
	for level, at := range cuts {
		if err := s.forget(ctx, "UPDATE kept SET at = max(at, ?) WHERE level = ?", at, level); err != nil {
			return err
		}
	}
	for kind, dictionary := range map[string]string{"windows": "series", "nodes": "places"} {
		if err := s.forgetRows(ctx, kind, dictionary, cuts); err != nil {
			return err
		}
	}
	if err := s.forget(ctx, "DELETE FROM events WHERE at < ?", cut(keep.Events)); err != nil {
		return err
	}
	if err := s.forget(ctx, "DELETE FROM batches WHERE at < ?", cut(max(keep.Raw, keep.Minutes))); err != nil {
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

func (s *Store) forgetRows(ctx context.Context, kind, dictionary string, cuts tables.Kept) error {
	var last int64
	if err := s.read.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM "+dictionary).Scan(&last); err != nil {
		return fmt.Errorf("maintain status database %s: %w", s.path, err)
	}
	const some = 100
	for id := int64(1); id <= last; id += some {
		for level, at := range cuts {
			rows := kind + tables.Level(level).Suffix()
			statement := fmt.Sprintf("DELETE FROM %s WHERE at < ? AND series IN (SELECT id FROM %s WHERE id >= ? AND id < ?)", rows, dictionary)
			if err := s.forget(ctx, statement, at, id, id+some); err != nil {
				return err
			}
		}
	}
	return nil
}
