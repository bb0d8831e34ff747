// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"homenode/internal/store"
)

// Nothing is a list of columns' values that change no sum.
func Nothing(columns []string) string {
	list := make([]string, 0, len(columns))
	for _, c := range columns {
		value := "0.0"
		if IsHow(c) {
			value = fmt.Sprintf("%d.0", noHow)
		}
		list = append(list, value+" AS "+c)
	}
	return strings.Join(list, ", ")
}

// LastList is a list of LastColumns, each from a table ("r.") or with a value; "" if they are not wanted.
func LastList(wanted bool, from string) string {
	var b strings.Builder
	for _, c := range LastColumns {
		value := from
		if strings.HasSuffix(from, ".") {
			value += c
		}
		if wanted {
			fmt.Fprintf(&b, ", %s AS %s", value, c)
		}
	}
	return b.String()
}

func scan(rows *sql.Rows) ([]any, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	row, to := make([]any, len(names)), make([]any, len(names))
	for i := range row {
		to[i] = &row[i]
	}
	if err := rows.Scan(to...); err != nil {
		return nil, err
	}
	return row, nil
}

// Wrap makes a subquery of a person's query, so that it can be nothing else.
func Wrap(query string, longest int) (string, error) {
	query = strings.TrimRight(strings.TrimSpace(query), "; \t\r\n")
	first, _, _ := strings.Cut(strings.ToUpper(query)+" ", " ")
	switch {
	case len(query) > longest:
		return "", fmt.Errorf("run SQL: the query has %d bytes: use at most %d", len(query), longest)
	case strings.ContainsRune(query, 0):
		return "", errors.New("run SQL: the query has a byte 0: leave it out")
	case !strings.HasPrefix(strings.TrimLeft(first, "("), "SELECT") && !strings.HasPrefix(first, "WITH"):
		return "", errors.New("run SQL: only a query that begins with SELECT or WITH is run: nothing can be changed here")
	}
	return "SELECT * FROM (" + query + "\n) q", nil
}

// mostBytes is how large an answer to a person's SQL may be.
const mostBytes = 64 << 20

// Gather makes a table of a person's query. More rows than asked for are an error.
func Gather(rows *sql.Rows, most int) (store.Table, error) {
	names, err := rows.Columns()
	if err != nil {
		return store.Table{}, fmt.Errorf("run SQL: %w", err)
	}
	var t store.Table
	for _, name := range names {
		t.Columns = append(t.Columns, store.Column{Name: name})
	}
	size := 0
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return store.Table{}, fmt.Errorf("run SQL: %w", err)
		}
		for i, v := range row {
			row[i] = Plain(v)
			text, _ := row[i].(string)
			size += 16 + len(text)
		}
		if t.Rows = append(t.Rows, row); len(t.Rows) > most || size > mostBytes {
			return store.Table{}, fmt.Errorf("run SQL: the answer has more than %d rows or %d MB: add a LIMIT, or add rows up", most, mostBytes>>20)
		}
	}
	if err := rows.Err(); err != nil {
		return store.Table{}, fmt.Errorf("run SQL: %w", err)
	}
	return t, nil
}

// ExportSQL is the rows of one piece, for ExportRows.
func ExportSQL(d Dialect, p Piece) string {
	return fmt.Sprintf("SELECT at, host, workload, service, owner, name, %s FROM (%s) f",
		strings.Join(WindowColumns, ", "), d.Facts("windows", WindowColumns, []Piece{p}, Filter{}, false))
}

// Querier is a connection or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ExportRows reads them, one at a time.
func ExportRows(ctx context.Context, from Querier, query string, level Level, yield func(Exported) error) error {
	rows, err := from.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	var k Key
	f := make(Fact, len(WindowColumns))
	to := []any{&k.At, &k.Host, &k.Workload, &k.Service, &k.Owner, &k.Name}
	for i := range f {
		to = append(to, &f[i])
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if err := yield(level.Row(k, f)); err != nil {
			return err
		}
	}
	return rows.Err()
}
