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

// migrations take a file from each schema version to the next. One that was released stays as it is.
var migrations = []string{first()}

// first is schema version 1. Rows name a series (a workload as its host described it) or a
// node by number. Their key is also their order: a question about one series reads one range.
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
			fmt.Fprintf(&b, "CREATE TABLE %s%s (series INTEGER NOT NULL, at INTEGER NOT NULL, %s REAL NOT NULL, %sPRIMARY KEY (series, at)) WITHOUT ROWID;\n",
				kind, level.Suffix(), strings.Join(columnsOf(kind), " REAL NOT NULL, "), last)
		}
	}
	return b.String()
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
	if version > len(migrations) {
		return fmt.Errorf("open status database %s: its schema is version %d, and this program knows versions up to %d: use a newer program", path, version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT", migrations[version], version+1, application)
		if _, err := db.ExecContext(ctx, script); err != nil {
			return fmt.Errorf("open status database %s: migrate it to schema %d: %w", path, version+1, err)
		}
	}
	return nil
}
