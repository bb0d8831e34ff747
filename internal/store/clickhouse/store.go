// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"homenode/internal/store"
	"homenode/internal/store/tables"
)

// Options say where the database is.
type Options struct {
	Address  string // host:port of the native protocol
	Database string // it must be there
	User     string
	Password string
	TLS      *tls.Config // nil: none
	// Lease is how long an attempt may take; 0: 30 s. A batch whose attempt was cut off after
	// its keys were written is taken again only then.
	Lease time.Duration
	// RollEvery is the least time between two roll-ups; 0: 1 h. Each adds rows of its own.
	RollEvery time.Duration
}

// Store is the status database in ClickHouse.
type Store struct {
	options Options
	db      *sql.DB     // questions
	native  driver.Conn // inserts, by column
}

var _ store.Store = (*Store)(nil)

// Open connects, and brings the tables to this program's schema.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.RollEvery == 0 {
		o.RollEvery = time.Hour
	}
	to := &driver.Options{
		Addr: []string{o.Address}, Auth: driver.Auth{Database: o.Database, Username: o.User, Password: o.Password},
		TLS: o.TLS, Compression: &driver.Compression{Method: driver.CompressionLZ4}, DialTimeout: 5 * time.Second,
	}
	native, err := driver.Open(to)
	if err != nil {
		return nil, fmt.Errorf("open status database of %s: %w", o.Address, err)
	}
	s := &Store{o, driver.OpenDB(to), native}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends all connections.
func (s *Store) Close() error { return errors.Join(s.db.Close(), s.native.Close()) }

func (s *Store) run(ctx context.Context, statement string) error {
	return s.native.Exec(ctx, statement)
}

// key is a batch's: a hash of host, run and number.
type key struct{ key, rest uint64 }

func keyOf(b store.Batch) key {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", b.Host, b.Run, b.Number))
	return key{binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:])}
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p)) // hash.Hash never fails
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// Add keeps the batches, all or none.
//
//  1. Batches whose keys an ended attempt wrote are there. If the attempt may still end, wait.
//  2. The attempt begins. Its number is the server's time, in seconds, and 32 random bits.
//  3. Rows, then keys.
//  4. If another attempt wrote one of these keys since, neither is sure to see the other: this
//     one gives up.
//  5. The attempt ends, if there is time: after the lease others think that it is dead.
func (s *Store) Add(ctx context.Context, batches []store.Batch) (added int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Lease*3/4)
	defer cancel()
	if added, err = s.add(ctx, batches); err != nil {
		return 0, addError(err)
	}
	return added, nil
}

func (s *Store) add(ctx context.Context, batches []store.Batch) (int, error) {
	began := time.Now()
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	fresh, keys, err := s.fresh(ctx, batches, now)
	if err != nil || len(fresh) == 0 {
		return 0, err
	}
	attempt, err := s.begin(ctx, now, false)
	if err != nil {
		return 0, err
	}
	if err := s.insertAll(ctx, fresh, keys, attempt); err != nil {
		return 0, err
	}
	others, err := s.attemptsOf(ctx, keys)
	if err != nil {
		return 0, err
	}
	open, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	for _, found := range others {
		for _, other := range found {
			if other != attempt && s.judge(other, open, now) != dead {
				return 0, fmt.Errorf("%w: another hub adds the same batch now", store.ErrBusy)
			}
		}
	}
	if time.Since(began) > s.options.Lease/2 {
		return 0, fmt.Errorf("%w: it took longer than %s", store.ErrBusy, s.options.Lease/2)
	}
	return len(fresh), s.end(ctx, attempt, false)
}

// busy are the server's errors that may be over later: 159 timeout, 160 too slow, 202 too many
// queries, 209 and 210 network, 241 memory, 243 disk, 252 too many parts, 394 cancelled.
var busy = []int32{159, 160, 202, 209, 210, 241, 243, 252, 394}

func addError(err error) error {
	var e *driver.Exception
	if errors.As(err, &e) && !slices.Contains(busy, e.Code) || errors.Is(err, store.ErrBusy) {
		return fmt.Errorf("add batches: %w", err)
	}
	return fmt.Errorf("add batches: %w: %w", store.ErrBusy, err)
}

// now is the server's time in seconds.
func (s *Store) now(ctx context.Context) (now uint32, err error) {
	err = s.native.QueryRow(ctx, "SELECT toUnixTimestamp(now())").Scan(&now)
	return now, err
}

func (s *Store) begin(ctx context.Context, now uint32, roll bool) (uint64, error) {
	var random [4]byte
	rand.Read(random[:]) // it never fails
	attempt := uint64(now)<<32 | uint64(binary.LittleEndian.Uint32(random[:]))
	return attempt, s.mark(ctx, attempt, roll, 1)
}

// end makes an attempt's rows count.
func (s *Store) end(ctx context.Context, attempt uint64, roll bool) error {
	return s.mark(ctx, attempt, roll, -1)
}

func (s *Store) mark(ctx context.Context, attempt uint64, roll bool, sign int) error {
	kind := 0
	if roll {
		kind = 1
	}
	return s.run(ctx, fmt.Sprintf("INSERT INTO attempts (attempt, roll, sign) SELECT toUInt64(%d), toUInt8(%d), toInt8(%d)", attempt, kind, sign))
}

// open are the attempts that have not ended, and whether each is a roll-up.
func (s *Store) open(ctx context.Context) (map[uint64]bool, error) {
	rows, err := s.native.Query(ctx, "SELECT attempt, roll FROM attempts GROUP BY attempt, roll HAVING sum(sign) > 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[uint64]bool{}
	for rows.Next() {
		var attempt uint64
		var roll uint8
		if err := rows.Scan(&attempt, &roll); err != nil {
			return nil, err
		}
		all[attempt] = roll == 1
	}
	return all, rows.Err()
}

// The states of an attempt.
const (
	ended = iota
	pending
	dead
)

func (s *Store) judge(attempt uint64, open map[uint64]bool, now uint32) int {
	switch _, isOpen := open[attempt]; {
	case !isOpen:
		return ended
	case s.isDead(attempt, now, s.options.Lease):
		return dead
	}
	return pending
}

// isDead adds a second, as the server's time is in whole ones.
func (s *Store) isDead(attempt uint64, now uint32, lease time.Duration) bool {
	return time.Duration(int64(now)-int64(attempt>>32)-1)*time.Second > lease
}

// fresh are the batches that no attempt added, and their keys.
func (s *Store) fresh(ctx context.Context, batches []store.Batch, now uint32) (fresh []store.Batch, keys []key, err error) {
	seen := map[key]bool{}
	var candidates []store.Batch
	for _, b := range batches {
		if k := keyOf(b); !seen[k] {
			seen[k] = true
			candidates, keys = append(candidates, b), append(keys, k)
		}
	}
	found, err := s.attemptsOf(ctx, keys)
	if err != nil || len(found) == 0 {
		return candidates, keys, err
	}
	open, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := keys
	keys = nil
	for i, b := range candidates {
		isThere := false
		for _, attempt := range found[all[i]] {
			switch s.judge(attempt, open, now) {
			case ended:
				isThere = true
			case pending:
				err = fmt.Errorf("%w: an attempt to add batch %d of host %s has not ended: wait %s", store.ErrBusy, b.Number, strconv.Quote(b.Host), s.options.Lease)
			}
		}
		if !isThere {
			fresh, keys = append(fresh, b), append(keys, all[i])
		}
	}
	return fresh, keys, err
}

// attemptsOf are the attempts that wrote these keys.
func (s *Store) attemptsOf(ctx context.Context, keys []key) (map[key][]uint64, error) {
	all := map[key][]uint64{}
	for part := range slices.Chunk(keys, 5000) {
		list := make([]string, 0, len(part))
		for _, k := range part {
			list = append(list, strconv.FormatUint(k.key, 10))
		}
		rows, err := s.native.Query(ctx, "SELECT key, rest, attempt FROM batches WHERE key IN ("+strings.Join(list, ",")+")")
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var k key
			var attempt uint64
			if err := rows.Scan(&k.key, &k.rest, &attempt); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			all[k] = append(all[k], attempt)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// insertAll inserts rows, then keys.
func (s *Store) insertAll(ctx context.Context, batches []store.Batch, keys []key, attempt uint64) error {
	windows, nodes, events := blocksOf(batches, attempt)
	var marks block
	for _, k := range keys {
		marks.row().u64(k.key, k.rest, attempt)
	}
	return errors.Join(
		s.insert(ctx, "windows ("+windowColumns+")", windows),
		s.insert(ctx, "nodes (host, node, at, "+strings.Join(tables.NodeColumns, ", ")+", attempt)", nodes),
		s.insert(ctx, "events (at, host, type, workload, service, kind, nodes, dry_run, state, rule, sentence, attempt)", events),
		s.insert(ctx, "batches (key, rest, attempt)", marks))
}

var windowColumns = "series, place, host, workload, service, owner, name, at, " + strings.Join(slices.Concat(tables.WindowColumns, tables.LastColumns), ", ") + ", attempt"

// blocksOf are the rows of batches, by table.
func blocksOf(batches []store.Batch, attempt uint64) (windows, nodes, events block) {
	for _, b := range batches {
		place, servers := hash(b.Host), tables.ServersOf(b)
		for _, w := range b.Windows {
			r := windows.row()
			r.u64(hash(b.Host, w.Workload), place)
			r.text(b.Host, w.Workload, w.Service, w.Owner, w.Name)
			r.i64(tables.Millis(w.At))
			r.f64(tables.OfWindow(w, servers[tables.Millis(w.At)])...)
			r.text(tables.LastOf(w)...)
			r.u64(attempt)
		}
		for _, n := range b.Nodes {
			r := nodes.row()
			r.text(b.Host)
			r.i64(int64(n.Node), tables.Millis(n.At))
			r.f64(tables.OfNode(n)...)
			r.u64(attempt)
		}
		for _, e := range tables.EventsOf(b) {
			r := events.row()
			r.i64(e.At)
			r.text(b.Host, e.Type, e.Workload, e.Service, e.Kind, e.Nodes)
			r.u8(e.DryRun)
			r.text(e.State, e.Rule, e.Sentence)
			r.u64(attempt)
		}
	}
	return windows, nodes, events
}
