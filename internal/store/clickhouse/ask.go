// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// state is what the rows that count depend on.
type state struct {
	open []uint64 // attempts that have not ended
	roll uint64   // the newest roll-up that ended
	upto uint64   // attempts until here are in roll-ups
	kept tables.Kept
}

// readState reads what is open first: a roll-up that ends meanwhile is left out.
func (s *Store) readState(ctx context.Context) (st state, err error) {
	open, err := s.open(ctx)
	if err != nil {
		return st, err
	}
	for attempt := range open {
		st.open = append(st.open, attempt)
	}
	slices.Sort(st.open)
	err = s.native.QueryRow(ctx, "SELECT max(attempt), max(upto) FROM rolls WHERE "+st.counts()).Scan(&st.roll, &st.upto)
	if err != nil {
		return st, err
	}
	err = s.native.QueryRow(ctx, "SELECT maxIf(at, level = 0), maxIf(at, level = 1), maxIf(at, level = 2) FROM kept").Scan(&st.kept[0], &st.kept[1], &st.kept[2])
	return st, err
}

// counts is the condition of rows that count.
func (st state) counts() string {
	list := "0"
	for _, attempt := range st.open {
		list += fmt.Sprintf(",%d", attempt)
	}
	return "attempt NOT IN (" + list + ")"
}

// dialect is ClickHouse's SQL for tables.
type dialect struct {
	state
	from, until int64
}

func (dialect) Text(s string) string { return "unhex('" + hex.EncodeToString([]byte(s)) + "')" }

func (d dialect) Events() string { return "SELECT * FROM events WHERE " + d.counts() }

func (dialect) Grouped() bool { return true }

// Workload: a series is a sum of host and workload.
func (dialect) Workload() string { return "f.series" }

func (dialect) Floor(figure string) string { return "floor(" + figure + ")" }

func (d dialect) Like(column, pattern string) string {
	return column + " LIKE " + d.Text(strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%").Replace(pattern))
}

func (dialect) Latest(column string) string {
	return "argMaxIf(" + column + ", f.at, f.newest = 1)"
}

// Facts adds to each rolled-up piece the raw rows that are not rolled up yet. A filter is read
// before all other columns: old servers choose one condition for that, and not the best.
func (d dialect) Facts(kind string, columns []string, pieces []tables.Piece, of tables.Filter, last bool) string {
	keys := "series, place, host, workload, service, owner, name, at"
	raw := kind
	switch kind {
	case "nodes":
		keys = "host, node, at"
	case "services", "hosts":
		keys, raw = groups[kind]+", at", "windows"
	}
	var parts []string
	part := func(level tables.Level, from, until int64, and string) {
		table := kind
		if level == tables.Raw {
			table = raw
		}
		first := ""
		if !of.Any() {
			first = " PREWHERE 1" + of.Where(d, "")
		}
		parts = append(parts, fmt.Sprintf("SELECT %s, %s%s, 0 AS newest FROM %s%s%s WHERE at >= %d AND at < %d AND %s%s",
			keys, strings.Join(columns, ", "), tables.LastList(last, "''"), table, level.Suffix(), first, from, until, d.counts(), and))
	}
	for _, p := range pieces {
		if p.Level == tables.Raw {
			part(tables.Raw, p.From, p.Until, "")
			continue
		}
		part(p.Level, p.From, p.Until, fmt.Sprintf(" AND attempt <= %d", d.roll))
		part(tables.Raw, p.From, p.Until, fmt.Sprintf(" AND attempt > %d", d.upto))
	}
	if last {
		from := max(d.from, d.until-time.Hour.Milliseconds())
		parts = append(parts, fmt.Sprintf("SELECT %s, %s, %s, 1 AS newest FROM %s WHERE at >= %d AND at < %d AND %s%s",
			keys, tables.Nothing(columns), strings.Join(tables.LastColumns, ", "), kind, from, d.until, d.counts(), of.Where(d, "")))
	}
	return strings.Join(parts, " UNION ALL ")
}

// Ask answers a question.
func (s *Store) Ask(ctx context.Context, q store.Question) (store.Table, error) {
	fail := func(err error) (store.Table, error) {
		return store.Table{}, fmt.Errorf("ask %s: %w", q.Topic, err)
	}
	st, err := s.readState(ctx)
	if err != nil {
		return fail(err)
	}
	query, err := tables.Compile(q, dialect{st, tables.Millis(q.From), tables.Millis(q.Until)}, st.kept)
	if err != nil {
		return store.Table{}, err
	}
	rows, err := s.db.QueryContext(ctx, query.SQL)
	if err != nil {
		return fail(err)
	}
	defer rows.Close()
	table, err := query.Table(rows)
	if err = errors.Join(err, rows.Close()); err != nil { // the next query needs the connection
		return fail(err)
	}
	if err := s.count(ctx, query, table); err != nil {
		return fail(err)
	}
	return table, nil
}

// count asks for the counts of the rows that are shown. Rows that came meanwhile are counted, too.
func (s *Store) count(ctx context.Context, q tables.Query, t store.Table) error {
	counts := q.Counts(t)
	if counts == "" {
		return nil
	}
	rows, err := s.db.QueryContext(ctx, counts)
	if err != nil {
		return err
	}
	defer rows.Close()
	return q.AddCounts(t, rows)
}

// outside are table functions: they read files or other servers.
var outside = regexp.MustCompile(`(?i)\b(url|file|remote|remotesecure|cluster|clusterallreplicas|mysql|postgresql|sqlite|odbc|jdbc|mongodb|redis|s3|s3cluster|gcs|hdfs|hdfscluster|azureblobstorage|deltalake|iceberg|hudi|executable|input|dictionary|urlcluster|filecluster)\s*\(`)

const longestQuery = 64 << 10

// SQL runs a query that may only read.
func (s *Store) SQL(ctx context.Context, query string, most int) (store.Table, error) {
	wrapped, err := tables.Wrap(query, longestQuery)
	if err != nil {
		return store.Table{}, err
	}
	if outside.MatchString(query) {
		return store.Table{}, tables.Refuse(errors.New("run SQL: a function that reads files or other servers is not run: use the tables of this database"))
	}
	ctx = driver.Context(ctx, driver.WithSettings(driver.Settings{"readonly": 2}))
	rows, err := s.db.QueryContext(ctx, wrapped)
	var e *driver.Exception
	if errors.As(err, &e) && !slices.Contains(busy, e.Code) {
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
	st, err := s.readState(ctx)
	if err != nil {
		return fmt.Errorf("export windows: %w", err)
	}
	d := dialect{state: st}
	return tables.Export(to, func(yield func(tables.Exported) error) error {
		for _, p := range tables.Levels(tables.Millis(from), tables.Millis(until), st.kept) {
			if err := tables.ExportRows(ctx, s.db, tables.ExportSQL(d, p), p.Level, yield); err != nil {
				return err
			}
		}
		return nil
	})
}
