// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/store"
	"homenode/internal/unit"
)

// Dialect is what differs between the stores' SQL.
type Dialect interface {
	// Text is a literal that is safe for any bytes.
	Text(string) string
	// Facts is a query of rows of "windows" or "nodes" with the named sums, and
	// series, host, workload, service, owner, name (of nodes: host, node), at.
	// last adds LastColumns of the newest raw rows. Kinds "services" and "hosts" are those of
	// windows, added up by what they are called after: service or host, at.
	Facts(kind string, columns []string, pieces []Piece, of Filter, last bool) string
	// Workload is what tells the workloads of a host apart in Facts, the cheapest to compare.
	Workload() string
	// Grouped says that sums by service and by host are kept. They have no counts of what is in them.
	Grouped() bool
	// Events is a query of all events: host, and the fields of Event.
	Events() string
	// Floor is a figure from 0 on, rounded down; of what is unknown it is unknown.
	Floor(figure string) string
	// Like is the condition that a text matches a pattern, in which * is any text.
	Like(column, pattern string) string
	// Latest is an aggregate: the newest known value of one of LastColumns.
	Latest(column string) string
}

// Filter leaves rows of one host, workload or service; "" is any.
type Filter struct {
	Host, Workload, Service string
	Patterns                bool // * of host and service is any text
	Key                     string
	Among                   []string // values that the column Key may have; empty: any
}

// Any says that the filter leaves all rows.
func (f Filter) Any() bool {
	return f.Host == "" && f.Workload == "" && f.Service == "" && len(f.Among) == 0
}

// Where is the filter's conditions, each with "AND " before it.
func (f Filter) Where(d Dialect, prefix string) string {
	var b strings.Builder
	for _, c := range []struct{ name, value string }{{"host", f.Host}, {"workload", f.Workload}, {"service", f.Service}} {
		column := prefix + c.name
		switch {
		case c.value == "":
		case f.Patterns && strings.Contains(c.value, "*"):
			b.WriteString(" AND " + d.Like(column, c.value))
		default:
			b.WriteString(" AND " + column + " = " + d.Text(c.value))
		}
	}
	if len(f.Among) > 0 {
		list := make([]string, 0, len(f.Among))
		for _, v := range f.Among {
			list = append(list, d.Text(v))
		}
		b.WriteString(" AND " + prefix + f.Key + " IN (" + strings.Join(list, ", ") + ")")
	}
	return b.String()
}

// Query is a question in SQL.
type Query struct {
	SQL     string
	columns []column
	most    int
	topic   topic
	asked   asked
}

// Compile checks a question and puts it into SQL.
func Compile(q store.Question, d Dialect, kept Kept) (Query, error) {
	t, err := check(&q)
	if err != nil {
		return Query{}, Refuse(err)
	}
	names := make([]string, 0, len(t.columns))
	for _, c := range t.columns {
		names = append(names, c.sql+" AS "+c.Name)
	}
	order := "CASE WHEN " + q.Sort + " IS NULL THEN 1 ELSE 0 END, " + q.Sort
	if !q.Ascending {
		order += " DESC"
	}
	for _, key := range t.keys {
		order += ", " + key
	}
	from, until := Millis(q.From), Millis(q.Until)
	a := asked{d: d, from: from, until: until, filter: Filter{Host: q.Host, Workload: q.Workload, Service: q.Service, Patterns: strings.Contains(t.takes, "*")}}
	a.grouped = d.Grouped() && !slices.Contains(strings.Fields(t.counts), q.Sort)
	if q.Topic == store.History {
		a.step = q.Step
	}
	a.pieces = Plan(from, until, a.step, kept)
	sql := fmt.Sprintf("SELECT * FROM (SELECT %s FROM (%s) t) u ORDER BY %s LIMIT %d OFFSET %d",
		strings.Join(names, ", "), t.rows(a), order, q.Most+1, q.Offset)
	return Query{sql, t.columns, q.Most, t, a}, nil
}

// mostAmong is how many keys a query of counts names. With more it counts for all.
const mostAmong = 200

// Counts is the query of what the table's rows have not: counts of workloads, which sums by
// service or host do not have. Only the rows of an answer are counted. "": the table has them.
func (q Query) Counts(t store.Table) string {
	if !q.asked.grouped || q.topic.counts == "" || len(t.Rows) == 0 {
		return ""
	}
	a := q.asked
	if a.filter.Key = q.topic.keys[0]; len(t.Rows) <= mostAmong {
		for _, row := range t.Rows {
			key, _ := row[0].(string)
			a.filter.Among = append(a.filter.Among, key)
		}
	}
	list := []string{"f." + a.filter.Key}
	for _, name := range strings.Fields(q.topic.counts) {
		list = append(list, a.counting(name))
	}
	return fmt.Sprintf("SELECT %s FROM (%s) f GROUP BY f.%s", strings.Join(list, ", "), a.d.Facts("windows", []string{"bound_s"}, a.pieces, a.filter, false), a.filter.Key)
}

// AddCounts puts the rows of the query of Counts into the table.
func (q Query) AddCounts(t store.Table, rows *sql.Rows) error {
	names := strings.Fields(q.topic.counts)
	at := map[string]int{}
	for i, row := range t.Rows {
		key, _ := row[0].(string)
		at[key] = i
		for _, name := range names {
			row[q.columnAt(name)] = int64(0)
		}
	}
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return err
		}
		key, _ := Plain(row[0]).(string)
		i, shown := at[key]
		if !shown {
			continue
		}
		for n, name := range names {
			x, err := asFloat(Plain(row[n+1]))
			if err != nil {
				return fmt.Errorf("read column %s: %w", name, err)
			}
			t.Rows[i][q.columnAt(name)] = int64(x)
		}
	}
	return rows.Err()
}

func (q Query) columnAt(name string) int {
	return slices.IndexFunc(q.columns, func(c column) bool { return c.Name == name })
}

// Limits of a question, so that an answer fits into memory and a page.
const (
	mostSteps = 100_000
	usualRows = 100
	mostBins  = 200 // of hosts, all at once
)

// refusal is an error of what was asked, in its own words.
type refusal struct{ error }

func (r refusal) Unwrap() error        { return r.error }
func (r refusal) Is(target error) bool { return target == store.ErrQuestion }

// Refuse says that an error is of what was asked: errors.Is finds store.ErrQuestion.
func Refuse(err error) error { return refusal{err} }

func check(q *store.Question) (topic, error) {
	t, ok := topics[q.Topic]
	if !ok {
		return t, fmt.Errorf("ask %q: no such topic: use %s", q.Topic, strings.Join(topicNames(), ", "))
	}
	if !q.From.Before(q.Until) {
		return t, fmt.Errorf("ask %s: from %s until %s is no time: until must be later", q.Topic, q.From.UTC().Format(time.RFC3339), q.Until.UTC().Format(time.RFC3339))
	}
	if err := t.checkFields(q); err != nil {
		return t, err
	}
	if q.Most == 0 && q.Topic == store.HostBins {
		q.Most = mostBins
	}
	if q.Most == 0 {
		q.Most = usualRows
	}
	if q.Most < 0 || q.Most > store.MostRows || q.Offset < 0 {
		return t, fmt.Errorf("ask %s: rows %d to %d: use at most %d rows, and an offset from 0", q.Topic, q.Offset, q.Offset+q.Most, store.MostRows)
	}
	if q.Sort == "" {
		q.Sort, q.Ascending = t.sort, t.ascending
	}
	if !slices.ContainsFunc(t.columns, func(c column) bool { return c.Name == q.Sort }) {
		return t, fmt.Errorf("ask %s: no column %q to sort by: use one of %s", q.Topic, q.Sort, strings.Join(t.names(), ", "))
	}
	return t, nil
}

// checkFields refuses what a topic does not use, and says what it needs.
func (t topic) checkFields(q *store.Question) error {
	if q.Topic == store.History {
		if (q.Workload == "" || q.Host == "") && q.Service == "" {
			return fmt.Errorf("ask history: name a service, or a host and its workload")
		}
		if q.Step == 0 {
			q.Step = stepOf(Millis(q.From), Millis(q.Until))
		}
		if q.Step < time.Second || q.Until.Sub(q.From)/q.Step > mostSteps {
			return fmt.Errorf("ask history: a step of %s is too short for this time: use at least 1 s and at most %d steps", q.Step, mostSteps)
		}
	} else if q.Step != 0 {
		return fmt.Errorf("ask %s: it has no step: leave it out", q.Topic)
	}
	for _, f := range []struct{ name, value string }{{"host", q.Host}, {"workload", q.Workload}, {"service", q.Service}} {
		if f.value != "" && !strings.Contains(t.takes, f.name) {
			return fmt.Errorf("ask %s: it takes no %s: leave it out", q.Topic, f.name)
		}
		if f.value == "" && strings.Contains(t.takes, f.name+"!") {
			return fmt.Errorf("ask %s: name the %s", q.Topic, f.name)
		}
	}
	return nil
}

func topicNames() []string {
	var all []string
	for name := range topics {
		all = append(all, string(name))
	}
	slices.Sort(all)
	return all
}

func (t topic) names() []string {
	var all []string
	for _, c := range t.columns {
		all = append(all, c.Name)
	}
	return all
}

// kind is how a cell of the database becomes one of the answer.
type kind int

const (
	text kind = iota
	count
	figure
	moment
	yes
	how
)

type column struct {
	store.Column
	sql  string // over the topic's rows
	kind kind
}

// Table gathers the answer from rows, each with the question's columns.
func (q Query) Table(rows *sql.Rows) (store.Table, error) {
	t := store.Table{Columns: make([]store.Column, 0, len(q.columns))}
	for _, c := range q.columns {
		t.Columns = append(t.Columns, c.Column)
	}
	for rows.Next() {
		if len(t.Rows) == q.most {
			t.More = true
			return t, nil
		}
		row, err := scan(rows)
		if err != nil {
			return store.Table{}, err
		}
		for i, c := range q.columns {
			if row[i], err = c.cell(row[i]); err != nil {
				return store.Table{}, err
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, rows.Err()
}

func (c column) cell(v any) (any, error) {
	v = Plain(v)
	if c.kind == text || v == nil {
		if c.kind == how {
			return unit.HowUnknown.String(), nil
		}
		return v, nil
	}
	x, err := asFloat(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read column %s: %w", c.Name, err)
	case c.kind == count:
		return int64(x), nil
	case c.kind == moment:
		return time.UnixMilli(int64(x)).UTC(), nil
	case c.kind == yes:
		return x > 0, nil
	case c.kind == how:
		return howName(x), nil
	}
	return x, nil
}

// Plain is a driver's cell as a table may have it.
func Plain(v any) any {
	switch x := v.(type) {
	case nil, string, int64, float64, bool, time.Time:
		return x
	case []byte:
		return string(x)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return nil
		}
		return Plain(r.Elem().Interface())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if r.Uint() > math.MaxInt64 {
			return strconv.FormatUint(r.Uint(), 10)
		}
		return int64(r.Uint())
	case reflect.Float32:
		return r.Float()
	}
	return fmt.Sprint(v)
}

func asFloat(v any) (float64, error) {
	switch x := v.(type) {
	case float64:
		return x, nil
	case int64:
		return float64(x), nil
	case string:
		return strconv.ParseFloat(x, 64)
	}
	return 0, fmt.Errorf("%T is no number", v)
}
