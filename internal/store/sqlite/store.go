// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// Store is the status database in a file.
type Store struct {
	path  string
	write *sql.DB // one connection: SQLite has one writer
	read  *sql.DB
	turn  chan struct{}    // of the one writer
	ids   map[string]int64 // of series and places, by their text; the writer's
}

var _ store.Store = (*Store)(nil)

// readers is how many questions are answered at once.
const readers = 4

// mostIDs is how many ids are remembered; the rest are looked up.
const mostIDs = 100_000

// Open opens or makes the file, and brings an older one to this program's schema.
func Open(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, ids: map[string]int64{}, turn: make(chan struct{}, 1)}
	var err error
	if s.write, err = s.open("_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=journal_size_limit(67108864)", 1); err != nil {
		return nil, err
	}
	if err := migrate(ctx, s.write, path); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	if s.read, err = s.open("_pragma=query_only(1)&_pragma=busy_timeout(5000)&_pragma=mmap_size(268435456)", readers); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	return s, nil
}

func (s *Store) open(options string, most int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: s.path}).EscapedPath()+"?"+options)
	if err != nil {
		return nil, fmt.Errorf("open status database %s: %w", s.path, err)
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// Close ends all connections.
func (s *Store) Close() error { return errors.Join(s.read.Close(), s.write.Close()) }

// Add keeps the batches, all or none.
func (s *Store) Add(ctx context.Context, batches []store.Batch) (added int, err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, addError(ctx, ctx.Err())
	}
	defer func() { <-s.turn }()
	if added, err = s.add(ctx, batches); err != nil {
		clear(s.ids) // some may be of what was rolled back
		return 0, addError(ctx, err)
	}
	if len(s.ids) > mostIDs {
		clear(s.ids)
	}
	return added, nil
}

func (s *Store) add(ctx context.Context, batches []store.Batch) (added int, err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to roll back
	a := adding{ctx: ctx, tx: tx, ids: s.ids, rolled: map[place]tables.Fact{}, prepared: map[string]*sql.Stmt{}}
	for _, b := range batches {
		isNew, err := a.batch(b)
		if err != nil {
			return 0, err
		}
		if isNew {
			added++
		}
	}
	if err := a.insert(); err != nil {
		return 0, err
	}
	if err := a.rollUp(); err != nil {
		return 0, err
	}
	return added, tx.Commit()
}

// addError says ErrBusy of what may be over later: a lock, a full disk, a deadline.
func addError(ctx context.Context, err error) error {
	var e *driver.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_INTERRUPT:
			return fmt.Errorf("add batches: %w: %w", store.ErrBusy, err)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("add batches: %w: %w", store.ErrBusy, err)
	}
	return fmt.Errorf("add batches: %w", err)
}

// adding is one Add.
type adding struct {
	ctx      context.Context
	tx       *sql.Tx
	ids      map[string]int64
	prepared map[string]*sql.Stmt
	raw      []raw
	rolled   map[place]tables.Fact
}

// place is where a row is.
type place struct {
	kind  string
	level tables.Level
	id    int64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.kind, q.kind), cmp.Compare(p.level, q.level), cmp.Compare(p.id, q.id))
}

// raw is a row to add.
type raw struct {
	place
	fact tables.Fact
	last []string
}

func (a *adding) exec(query string, args ...any) (changed int64, err error) {
	statement := a.prepared[query]
	if statement == nil {
		if statement, err = a.tx.PrepareContext(a.ctx, query); err != nil {
			return 0, err
		}
		a.prepared[query] = statement
	}
	result, err := statement.ExecContext(a.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (a *adding) batch(b store.Batch) (isNew bool, err error) {
	run, err := a.id("runs", []string{"host", "run"}, b.Host, b.Run)
	if err != nil {
		return false, err
	}
	events := tables.EventsOf(b)
	changed, err := a.exec("INSERT OR IGNORE INTO batches VALUES (?, ?, ?)", run, int64(b.Number), newest(b, events))
	if err != nil || changed == 0 {
		return false, err
	}
	for _, n := range b.Nodes {
		node, err := a.id("places", []string{"host", "node"}, b.Host, n.Node)
		if err != nil {
			return false, err
		}
		if err := a.row("nodes", node, tables.Millis(n.At), tables.OfNode(n), nil); err != nil {
			return false, err
		}
	}
	servers := tables.ServersOf(b)
	for _, w := range b.Windows {
		series, err := a.id("series", []string{"host", "workload", "service", "owner", "name"}, b.Host, w.Workload, w.Service, w.Owner, w.Name)
		if err != nil {
			return false, err
		}
		if err := a.row("windows", series, tables.Millis(w.At), tables.OfWindow(w, servers[tables.Millis(w.At)]), tables.LastOf(w)); err != nil {
			return false, err
		}
	}
	for _, e := range events {
		if _, err := a.exec("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", e.At, b.Host, e.Type, e.Workload, e.Service, e.Kind, e.Nodes, e.DryRun, e.State, e.Rule, e.Sentence); err != nil {
			return false, err
		}
	}
	return true, nil
}

// newest is the last time in a batch: as long as rows of it may be there, its key is.
func newest(b store.Batch, events []tables.Event) (at int64) {
	for _, w := range b.Windows {
		at = max(at, tables.Millis(w.At))
	}
	for _, n := range b.Nodes {
		at = max(at, tables.Millis(n.At))
	}
	for _, e := range events {
		at = max(at, e.At)
	}
	return at
}

// id is a dictionary's number of a text, made if it is new.
func (a *adding) id(dictionary string, columns []string, key ...any) (int64, error) {
	text := fmt.Sprintf("%s %q", dictionary, key)
	if id, ok := a.ids[text]; ok {
		return id, nil
	}
	marks := strings.Repeat(", ?", len(columns))[2:]
	names := strings.Join(columns, ", ")
	if _, err := a.exec(fmt.Sprintf("INSERT OR IGNORE INTO %s (%s) VALUES (%s)", dictionary, names, marks), key...); err != nil {
		return 0, err
	}
	var id int64
	err := a.tx.QueryRowContext(a.ctx, fmt.Sprintf("SELECT id FROM %s WHERE (%s) = (%s)", dictionary, names, marks), key...).Scan(&id)
	if err == nil {
		a.ids[text] = id
	}
	return id, err
}

// row is a raw row, added at the end.
func (a *adding) row(kind string, series, at int64, f tables.Fact, last []string) error {
	if series > mostSeries {
		return fmt.Errorf("the file has had %d workloads: begin a new one, or use ClickHouse", mostSeries)
	}
	if at < 0 || at > mostMillis {
		return fmt.Errorf("a row of %s: its time must be from 1970 to 2108", time.UnixMilli(at).UTC().Format(time.RFC3339))
	}
	a.raw = append(a.raw, raw{place{kind, tables.Raw, at<<seriesBits | series}, f, last})
	return nil
}

// insert adds raw rows in their order. A row that is there, from another batch, stays as it is.
func (a *adding) insert() error {
	slices.SortStableFunc(a.raw, func(r, s raw) int { return r.compare(s.place) })
	for _, r := range a.raw {
		args := append(make([]any, 0, 2+len(r.last)+len(r.fact)), r.id, r.id&mostSeries)
		for _, t := range r.last {
			args = append(args, t)
		}
		for _, v := range r.fact {
			args = append(args, v)
		}
		changed, err := a.exec(inserts[r.kind], args...)
		if err != nil {
			return err
		}
		if changed == 0 {
			continue
		}
		for level := tables.Minutes; level <= tables.Hours; level++ {
			key := place{r.kind, level, tables.Bucket(r.id>>seriesBits, level.Size())<<seriesBits | r.id&mostSeries}
			if sum, ok := a.rolled[key]; ok {
				sum.Add(columnsOf(r.kind), r.fact)
			} else {
				a.rolled[key] = slices.Clone(r.fact)
			}
		}
	}
	return nil
}

var inserts = map[string]string{
	"windows": "INSERT OR IGNORE INTO windows_rows VALUES (?, ?" + strings.Repeat(", ?", len(tables.LastColumns)+len(tables.WindowColumns)) + ")",
	"nodes":   "INSERT OR IGNORE INTO nodes_rows VALUES (?, ?" + strings.Repeat(", ?", len(tables.NodeColumns)) + ")",
}

var upserts = map[string]string{"windows": upsert("windows"), "nodes": upsert("nodes")}

// upsert adds a row to one that may be there; "%s" is the level's suffix.
func upsert(kind string) string {
	var sets []string
	for _, c := range columnsOf(kind) {
		if tables.IsHow(c) {
			sets = append(sets, fmt.Sprintf("%s = min(%s, excluded.%s)", c, c, c))
		} else {
			sets = append(sets, fmt.Sprintf("%s = %s + excluded.%s", c, c, c))
		}
	}
	return "INSERT INTO " + kind + "%s_rows VALUES (?, ?" + strings.Repeat(", ?", len(columnsOf(kind))) + ") ON CONFLICT (id) DO UPDATE SET " + strings.Join(sets, ", ")
}

func (a *adding) rollUp() error {
	for _, key := range slices.SortedFunc(maps.Keys(a.rolled), place.compare) {
		args := append(make([]any, 0, 2+len(a.rolled[key])), key.id, key.id&mostSeries)
		for _, v := range a.rolled[key] {
			args = append(args, v)
		}
		if _, err := a.exec(fmt.Sprintf(upserts[key.kind], key.level.Suffix()), args...); err != nil {
			return err
		}
	}
	return nil
}
