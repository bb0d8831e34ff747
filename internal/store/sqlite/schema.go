// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"homenode/internal/store/tables"
)

// application is the file's PRAGMA application_id: "hnsd".
const application = 0x686e7364

// migrations take a file from each schema version to the next, the first from nothing. One that was released stays as it is.
var migrations = []string{first()}

// A row's id is its time and its series (a workload as its host described it) or place (a node):
// rows are in the order of time, and a page is filled before the next one is begun. Ordered by
// series, or without a rowid, pages were half empty.
const (
	seriesBits = 21
	mostSeries = 1<<seriesBits - 1
	mostMillis = 1<<(63-seriesBits) - 1 // in the year 2109
)

// idOf is the least id of a time. Times that no row can have are before or after all rows.
func idOf(ms int64) int64 { return min(max(ms, 0), mostMillis) << seriesBits }

var dictionaries = map[string]string{"windows": "series", "nodes": "places"}

// first is the first schema version that is read, tables.Unreleased + 1.
func first() string {
	var b strings.Builder
	b.WriteString(`
CREATE TABLE runs (id INTEGER PRIMARY KEY, host TEXT NOT NULL, run TEXT NOT NULL, UNIQUE (host, run));
CREATE TABLE batches (run INTEGER NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (run, number)) WITHOUT ROWID;
CREATE TABLE series (id INTEGER PRIMARY KEY, host TEXT NOT NULL, workload TEXT NOT NULL, service TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (host, workload, service, owner, name));
CREATE TABLE places (id INTEGER PRIMARY KEY, host TEXT NOT NULL, node INTEGER NOT NULL, UNIQUE (host, node));
CREATE TABLE events (at INTEGER NOT NULL, host TEXT NOT NULL, type TEXT NOT NULL, workload TEXT NOT NULL, service TEXT NOT NULL, kind TEXT NOT NULL, nodes TEXT NOT NULL, dry_run INTEGER NOT NULL, state TEXT NOT NULL, rule TEXT NOT NULL, sentence TEXT NOT NULL);
CREATE INDEX events_at ON events (at);
CREATE TABLE kept (level INTEGER PRIMARY KEY, at INTEGER NOT NULL);
INSERT INTO kept VALUES (0, 0), (1, 0), (2, 0);
`)
	for _, kind := range []string{"windows", "nodes"} {
		for level := tables.Raw; level <= tables.Hours; level++ {
			last := ""
			if kind == "windows" && level == tables.Raw {
				last = strings.Join(tables.LastColumns, " TEXT NOT NULL, ") + " TEXT NOT NULL, "
			}
			view, names := kind+level.Suffix(), "d.host, d.workload, d.service, d.owner, d.name"
			if kind == "nodes" {
				names = "d.host, d.node"
			}
			lasts := ""
			if last != "" {
				lasts = ", r." + strings.Join(tables.LastColumns, ", r.")
			}
			fmt.Fprintf(&b, "CREATE TABLE %s_rows (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, %s%s NUMERIC NOT NULL);\nCREATE INDEX %s_series ON %s_rows (series);\n",
				view, last, strings.Join(columnsOf(kind), " NUMERIC NOT NULL, "), view, view)
			fmt.Fprintf(&b, "CREATE VIEW %s AS SELECT r.series, %s, r.id >> %d AS at, %s%s FROM %s_rows r JOIN %s d ON d.id = r.series;\n",
				view, names, seriesBits, reals(columnsOf(kind)), lasts, view, dictionaries[kind])
		}
	}
	return b.String()
}

// reals are columns as what they are. In the rows, whole numbers are integers, which take fewer
// bytes, and SQLite divides an integer by an integer without a remainder. Columns of REAL do the
// same by themselves, but not in a table with an index.
func reals(columns []string) string {
	list := make([]string, 0, len(columns))
	for _, c := range columns {
		list = append(list, fmt.Sprintf("r.%s + 0.0 AS %s", c, c))
	}
	return strings.Join(list, ", ")
}

func columnsOf(kind string) []string {
	if kind == "nodes" {
		return tables.NodeColumns
	}
	return tables.WindowColumns
}

// migrate brings the file to this program's schema, each version in one transaction.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	var version, app, objects int
	row := db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)")
	if err := row.Scan(&version, &app, &objects); err != nil {
		return fmt.Errorf("open status database %s: %w", path, err)
	}
	if objects > 0 && app != application {
		return fmt.Errorf("open status database %s: it is a database of another program: name another file", path)
	}
	newest := tables.Unreleased + len(migrations)
	switch {
	case version > newest:
		return fmt.Errorf("open status database %s: its schema is version %d, and this program knows versions up to %d: use a newer program", path, version, newest)
	case version == 0 && objects == 0:
		version = tables.Unreleased
	case version <= tables.Unreleased:
		return fmt.Errorf("open status database %s: its schema is version %d, of a development version: move it away and start with an empty one", path, version)
	}
	for ; version < newest; version++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT", migrations[version-tables.Unreleased], version+1, application)
		if _, err := db.ExecContext(ctx, script); err != nil {
			return fmt.Errorf("open status database %s: migrate it to schema %d: %w", path, version+1, err)
		}
	}
	return nil
}
