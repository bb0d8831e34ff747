// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"homenode/internal/store/tables"
)

// migrations take the tables from each schema version to the next. Each statement may be run
// twice: two programs may start at once.
var migrations = [][]string{first()}

const (
	keyColumns = "series UInt64, place UInt64, host String, workload String, service String, owner String, name String, at Int64"
	dayOfRows  = "intDiv(at, 86400000)"
	day        = 86400 << 32 // of attempts
)

// first is the first schema version that is read, tables.Unreleased + 1.
func first() []string {
	all := []string{
		"CREATE TABLE IF NOT EXISTS events (at Int64, host String, type String, workload String, service String, kind String, nodes String, dry_run UInt8, state String, rule String, sentence String, attempt UInt64) ENGINE = MergeTree PARTITION BY intDiv(at, 2592000000) ORDER BY (at, host)",
		// A batch's key is a hash of 128 bits. Small granules: each is looked for by itself.
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS batches (key UInt64, rest UInt64, attempt UInt64) ENGINE = MergeTree PARTITION BY intDiv(attempt, %d) ORDER BY key SETTINGS index_granularity = 256", 10*day),
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS attempts (attempt UInt64, roll UInt8, sign Int8) ENGINE = CollapsingMergeTree(sign) PARTITION BY intDiv(attempt, %d) ORDER BY (attempt, roll)", 30*day),
		"CREATE TABLE IF NOT EXISTS rolls (attempt UInt64, upto UInt64) ENGINE = MergeTree ORDER BY attempt",
		"CREATE TABLE IF NOT EXISTS kept (level UInt8, at Int64) ENGINE = MergeTree ORDER BY level",
	}
	for level := tables.Raw; level <= tables.Hours; level++ {
		windows, part := floats(tables.WindowColumns), dayOfRows
		if level == tables.Raw {
			windows += ", " + strings.Join(tables.LastColumns, " String, ") + " String"
		}
		if level == tables.Hours {
			part = "intDiv(at, 2592000000)"
		}
		all = append(all,
			fmt.Sprintf("CREATE TABLE IF NOT EXISTS windows%s (%s, %s, attempt UInt64) ENGINE = MergeTree PARTITION BY %s ORDER BY (service, host, workload, at)", level.Suffix(), keyColumns, windows, part),
			fmt.Sprintf("CREATE TABLE IF NOT EXISTS nodes%s (host String, node Int64, at Int64, %s, attempt UInt64) ENGINE = MergeTree PARTITION BY %s ORDER BY (host, node, at)", level.Suffix(), floats(tables.NodeColumns), part))
	}
	for level := tables.Minutes; level <= tables.Hours; level++ {
		for kind, key := range groups {
			all = append(all, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s (%s String, at Int64, %s, attempt UInt64) ENGINE = MergeTree PARTITION BY %s ORDER BY (%s, at)",
				kind, level.Suffix(), key, floats(tables.WindowColumns), partitions[level], key))
		}
	}
	return all
}

// groups are the tables of minutes and hours in which windows are added up further, and by what.
var groups = map[string]string{"services": "service", "hosts": "host"}

func floats(columns []string) string { return strings.Join(columns, " Float64, ") + " Float64" }

// migrate brings the database's tables to this program's schema.
func (s *Store) migrate(ctx context.Context) error {
	at := fmt.Sprintf("open status database %s of %s", s.options.Database, s.options.Address)
	if err := s.run(ctx, "CREATE TABLE IF NOT EXISTS schema (version UInt32) ENGINE = MergeTree ORDER BY version"); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	var version uint32
	if err := s.db.QueryRowContext(ctx, "SELECT max(version) FROM schema").Scan(&version); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	newest := tables.Unreleased + len(migrations)
	switch {
	case int(version) > newest:
		return fmt.Errorf("%s: its schema is version %d, and this program knows versions up to %d: use a newer program", at, version, newest)
	case version == 0:
		version = tables.Unreleased
	case version <= tables.Unreleased:
		return fmt.Errorf("%s: its schema is version %d, of a development version: start with an empty database", at, version)
	}
	for ; int(version) < newest; version++ {
		for _, statement := range append(migrations[version-tables.Unreleased], fmt.Sprintf("INSERT INTO schema (version) SELECT toUInt32(%d)", version+1)) {
			if err := s.run(ctx, statement); err != nil {
				return fmt.Errorf("%s: migrate it to schema %d: %w", at, version+1, err)
			}
		}
	}
	return nil
}
