// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// dialect is SQLite's SQL for tables.
type dialect struct{ from, until int64 }

func (dialect) Text(s string) string { return "CAST(X'" + hex.EncodeToString([]byte(s)) + "' AS TEXT)" }

func (dialect) Events() string { return "SELECT * FROM events" }

// Grouped: a file is for one host or some hundred, whose rows are quickly added up.
func (dialect) Grouped() bool { return false }

// Workload: a workload has several series if its service changes.
func (dialect) Workload() string { return "f.workload" }

func (dialect) Floor(figure string) string { return "CAST(" + figure + " AS INTEGER)" }

func (d dialect) Like(column, pattern string) string {
	return column + " GLOB " + d.Text(strings.NewReplacer("?", "[?]", "[", "[[]").Replace(pattern))
}

// Latest finds the newest text by a maximum of time and text together.
func (dialect) Latest(column string) string {
	return fmt.Sprintf("coalesce(substr(max(CASE WHEN f.newest THEN printf('%%015d', f.at) || %s END), 16), '')", column)
}

// Facts reads the dictionary first where a filter leaves few of it, otherwise the rows: a
// CROSS JOIN is done in its order.
func (d dialect) Facts(kind string, columns []string, pieces []tables.Piece, of tables.Filter, last bool) string {
	keys := "d.id AS series, d.host AS place, d.host AS host, d.workload AS workload, d.service AS service, d.owner AS owner, d.name AS name"
	if kind == "nodes" {
		keys = "d.host AS host, d.node AS node"
	}
	keys += fmt.Sprintf(", r.id >> %d AS at", seriesBits)
	tablesOf := "%s d CROSS JOIN %s r"
	if of.Any() {
		tablesOf = "%[2]s r CROSS JOIN %[1]s d"
	}
	var parts []string
	for _, p := range pieces {
		parts = append(parts, fmt.Sprintf("SELECT %s, %s%s, 0 AS newest FROM %s WHERE d.id = r.series AND r.id >= %d AND r.id < %d%s",
			keys, reals(columns), tables.LastList(last, "''"), fmt.Sprintf(tablesOf, dictionaries[kind], kind+p.Suffix()+"_rows"), idOf(p.From), idOf(p.Until), of.Where(d, "d.")))
	}
	if last {
		parts = append(parts, fmt.Sprintf("SELECT %s, %s%s, 1 AS newest FROM series d CROSS JOIN windows_rows r WHERE r.series = d.id AND r.id = (SELECT max(id) FROM windows_rows m WHERE m.series = d.id AND m.id >= %d AND m.id < %d)%s",
			keys, tables.Nothing(columns), tables.LastList(last, "r."), idOf(d.from), idOf(d.until), of.Where(d, "d.")))
	}
	return strings.Join(parts, " UNION ALL ")
}

// Ask answers a question from one state of the file.
func (s *Store) Ask(ctx context.Context, q store.Question) (store.Table, error) {
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return store.Table{}, fmt.Errorf("ask %s: %w", q.Topic, err)
	}
	defer tx.Rollback() //nolint:errcheck // it only reads
	kept, err := readKept(ctx, tx)
	if err != nil {
		return store.Table{}, fmt.Errorf("ask %s: %w", q.Topic, err)
	}
	query, err := tables.Compile(q, dialect{tables.Millis(q.From), tables.Millis(q.Until)}, kept)
	if err != nil {
		return store.Table{}, err
	}
	rows, err := tx.QueryContext(ctx, query.SQL)
	if err != nil {
		return store.Table{}, fmt.Errorf("ask %s: %w", q.Topic, err)
	}
	defer rows.Close()
	table, err := query.Table(rows)
	if err != nil {
		return store.Table{}, fmt.Errorf("ask %s: %w", q.Topic, err)
	}
	return table, nil
}

func readKept(ctx context.Context, tx *sql.Tx) (kept tables.Kept, err error) {
	err = tx.QueryRowContext(ctx, "SELECT (SELECT at FROM kept WHERE level = 0), (SELECT at FROM kept WHERE level = 1), (SELECT at FROM kept WHERE level = 2)").Scan(&kept[0], &kept[1], &kept[2])
	return kept, err
}

// Limits of a person's SQL.
const (
	longestCell  = 1 << 20
	longestQuery = 64 << 10
)

// SQL runs a query on a connection of its own. The file is open for reading only there, and no
// other file can be attached.
func (s *Store) SQL(ctx context.Context, query string, most int) (store.Table, error) {
	wrapped, err := tables.Wrap(query, longestQuery)
	if err != nil {
		return store.Table{}, err
	}
	db, err := s.open("mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)", 1)
	if err != nil {
		return store.Table{}, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return store.Table{}, fmt.Errorf("run SQL: %w", err)
	}
	defer conn.Close()
	for id, value := range map[int]int{codes.SQLITE_LIMIT_ATTACHED: 0, codes.SQLITE_LIMIT_LENGTH: longestCell} {
		if _, err := driver.Limit(conn, id, value); err != nil {
			return store.Table{}, fmt.Errorf("run SQL: %w", err)
		}
	}
	rows, err := conn.QueryContext(ctx, wrapped)
	if err != nil && ctx.Err() == nil {
		return store.Table{}, tables.Refuse(fmt.Errorf("run SQL: %w", err))
	}
	if err != nil {
		return store.Table{}, fmt.Errorf("run SQL: %w", err)
	}
	defer rows.Close()
	return tables.Gather(rows, most)
}

// Export writes the windows of a time as Parquet.
func (s *Store) Export(ctx context.Context, to io.Writer, from, until time.Time) error {
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("export windows: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it only reads
	kept, err := readKept(ctx, tx)
	if err != nil {
		return fmt.Errorf("export windows: %w", err)
	}
	return tables.Export(to, func(yield func(tables.Exported) error) error {
		for _, p := range tables.Levels(tables.Millis(from), tables.Millis(until), kept) {
			query := tables.ExportSQL(dialect{}, p)
			if err := tables.ExportRows(ctx, tx, query, p.Level, yield); err != nil {
				return err
			}
		}
		return nil
	})
}
