// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// rollLease is how long a roll-up may take.
const rollLease = 30 * time.Minute

// rowsAtOnce is how many raw rows one statement rolls up, and groupBytes how much of their groups
// it holds in memory: beyond that the server writes them to its disk, and takes about twice as much
// to read them again.
const (
	rowsAtOnce = 10_000_000
	groupBytes = 1 << 30
)

// Maintain rolls rows up and drops old days.
func (s *Store) Maintain(ctx context.Context, now time.Time, keep store.Retention) error {
	if err := s.rollUp(ctx); err != nil {
		return fmt.Errorf("roll up: %w", err)
	}
	if err := s.forget(ctx, now, keep); err != nil {
		return fmt.Errorf("forget old rows: %w", err)
	}
	return nil
}

// rollUp adds minutes and hours of the attempts that ended since the last time.
//
//  1. Attempts that began before the lease have ended or are dead.
//  2. A roll-up is an attempt itself. Of two at once, one that sees the other gives up.
//  3. Late rows make further rows of the same minute: they are added up when asked.
func (s *Store) rollUp(ctx context.Context) error {
	began := time.Now()
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	st, err := s.readState(ctx)
	if err != nil {
		return err
	}
	upto := (uint64(now) - uint64(s.options.Lease.Seconds()) - 1) << 32
	if st.upto>>32+uint64(s.options.RollEvery.Seconds()) > upto>>32 {
		return nil
	}
	attempt, err := s.begin(ctx, now, true)
	if err != nil {
		return err
	}
	if st, err = s.readState(ctx); err != nil {
		return err
	}
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	for other, roll := range open {
		if roll && other != attempt && !s.isDead(other, now, rollLease) || st.upto >= upto {
			return s.end(ctx, attempt, true) // it has no rows
		}
	}
	if err := s.rollRows(ctx, st, upto, attempt); err != nil {
		return err
	}
	if time.Since(began) > rollLease/2 {
		return fmt.Errorf("it took longer than %s: call Maintain more often", rollLease/2)
	}
	if err := s.run(ctx, fmt.Sprintf("INSERT INTO rolls (attempt, upto) SELECT toUInt64(%d), toUInt64(%d)", attempt, upto)); err != nil {
		return err
	}
	return s.end(ctx, attempt, true)
}

func (s *Store) rollRows(ctx context.Context, st state, upto, attempt uint64) error {
	ctx = driver.Context(ctx, driver.WithSettings(driver.Settings{"max_bytes_before_external_group_by": groupBytes}))
	of := fmt.Sprintf("attempt > %d AND attempt <= %d AND %s", st.upto, upto, st.counts())
	var rows uint64
	if err := s.native.QueryRow(ctx, "SELECT count() FROM windows WHERE "+of).Scan(&rows); err != nil {
		return err
	}
	for _, level := range []tables.Level{tables.Minutes, tables.Hours} {
		parts := rows/rowsAtOnce + 1
		for part := range parts {
			if err := s.run(ctx, rollSQL("windows", "windows", level, "host, workload, service, owner, name", "series, place", fmt.Sprintf("%s AND place %% %d = %d", of, parts, part), attempt)); err != nil {
				return err
			}
		}
		if err := s.run(ctx, rollSQL("nodes", "nodes", level, "host, node", "", of, attempt)); err != nil {
			return err
		}
		for kind, key := range groups {
			if err := s.run(ctx, rollSQL(kind, "windows", level, key, "", of, attempt)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rollSQL adds raw rows up to a level's. Columns are inserted by their order.
// same are columns that rows with the same keys have in common.
func rollSQL(kind, from string, level tables.Level, keys, same, of string, attempt uint64) string {
	columns, names := tables.WindowColumns, keys
	if from == "nodes" {
		columns = tables.NodeColumns
	}
	var list []string
	if same != "" {
		names += ", " + same
		for _, c := range strings.Split(same, ", ") {
			list = append(list, "any("+c+")")
		}
	}
	for _, c := range columns {
		if tables.IsHow(c) {
			list = append(list, "min("+c+")")
		} else {
			list = append(list, "sum("+c+")")
		}
	}
	size := level.Size().Milliseconds()
	return fmt.Sprintf("INSERT INTO %s%s (at, %s, %s, attempt) SELECT intDiv(at, %d) * %d AS bucket, %s, %s, toUInt64(%d) FROM %s WHERE %s GROUP BY bucket, %s",
		kind, level.Suffix(), names, strings.Join(columns, ", "), size, size, keys, strings.Join(list, ", "), attempt, from, of, keys)
}

// forget drops days that are older than the retention says. Questions no longer read them first.
// A day with rows that are not rolled up stays.
func (s *Store) forget(ctx context.Context, now time.Time, keep store.Retention) error {
	st, err := s.readState(ctx)
	if err != nil {
		return err
	}
	cuts := tables.Kept{}
	for level, keep := range []time.Duration{keep.Raw, keep.Minutes, keep.Hours} {
		cuts[level] = max(st.kept[level], tables.Bucket(tables.Millis(now.Add(-keep)), 24*time.Hour))
		if cuts[level] == st.kept[level] {
			continue
		}
		if err := s.run(ctx, fmt.Sprintf("INSERT INTO kept (level, at) SELECT toUInt8(%d), toInt64(%d)", level, cuts[level])); err != nil {
			return err
		}
	}
	for level, cut := range cuts {
		and := ""
		if tables.Level(level) == tables.Raw {
			and = fmt.Sprintf(" AND max(attempt) <= %d", st.upto)
		}
		for _, kind := range []string{"windows", "nodes", "services", "hosts"} {
			if groups[kind] != "" && tables.Level(level) == tables.Raw {
				continue
			}
			if err := s.drop(ctx, kind+tables.Level(level).Suffix(), partitions[level], cut, and); err != nil {
				return err
			}
		}
	}
	if err := s.drop(ctx, "events", partitions[tables.Hours], tables.Millis(now.Add(-keep.Events)), ""); err != nil {
		return err
	}
	return s.dropKeys(ctx, keep)
}

var partitions = [...]string{dayOfRows, dayOfRows, "intDiv(at, 2592000000)"}

// drop drops the partitions whose rows are all older.
func (s *Store) drop(ctx context.Context, table, partition string, before int64, and string) error {
	rows, err := s.native.Query(ctx, fmt.Sprintf("SELECT %s AS part FROM %s GROUP BY part HAVING max(at) < %d%s", partition, table, before, and))
	if err != nil {
		return err
	}
	defer rows.Close()
	var old []int64
	for rows.Next() {
		var part int64
		if err := rows.Scan(&part); err != nil {
			return err
		}
		old = append(old, part)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, part := range old {
		if err := s.run(ctx, fmt.Sprintf("ALTER TABLE %s DROP PARTITION %d", table, part)); err != nil {
			return err
		}
	}
	return nil
}

// dropKeys forgets keys of batches with the minutes, by the server's time.
func (s *Store) dropKeys(ctx context.Context, keep store.Retention) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	oldest := uint64(max(0, int64(now)-int64(max(keep.Raw, keep.Minutes).Seconds()))) << 32
	var parts []uint64
	rows, err := s.native.Query(ctx, fmt.Sprintf("SELECT intDiv(attempt, %d) AS part FROM batches GROUP BY part HAVING max(attempt) < %d", uint64(10*day), oldest))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var part uint64
		if err := rows.Scan(&part); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, part := range parts {
		if err := s.run(ctx, fmt.Sprintf("ALTER TABLE batches DROP PARTITION %d", part)); err != nil {
			return err
		}
	}
	return nil
}
