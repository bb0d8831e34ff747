// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// Store keeps batches and answers questions. All methods may be called at once from several
// goroutines, and a call ends when its context does.
type Store interface {
	// Add keeps the batches, all or none. It says how many were new; the others were there
	// before. When it returns without an error, a crash loses nothing of them.
	Add(ctx context.Context, batches []Batch) (added int, err error)
	// Ask answers a question from rows of the time that it names, rolled up or raw.
	Ask(ctx context.Context, q Question) (Table, error)
	// SQL answers a query of the store's own dialect. It changes nothing, and ends with an
	// error at its limit of rows.
	SQL(ctx context.Context, query string, most int) (Table, error)
	// Maintain rolls rows up and forgets what is older than the retention says.
	Maintain(ctx context.Context, now time.Time, keep Retention) error
	// Export writes the windows of a time as Parquet.
	Export(ctx context.Context, to io.Writer, from, until time.Time) error
	Close() error
}

// ErrBusy is what Add returns when the store is slow or gone for now: the same batch may be
// sent again later.
var ErrBusy = errors.New("the store does not take rows now")

// Retention is how long rows of each kind are kept.
type Retention struct {
	Raw, Minutes, Hours time.Duration
	Events              time.Duration // decisions and outcomes
}

// Usual is the retention where none is configured.
var Usual = Retention{Raw: 48 * time.Hour, Minutes: 30 * 24 * time.Hour, Hours: 400 * 24 * time.Hour, Events: 400 * 24 * time.Hour}

// Topic is what a question is about.
type Topic string

// The questions that are ready-made.
const (
	Services  Topic = "services"  // each service: instances, hosts, local access ratio (weighted by reads, or by CPU where nothing counts them), traffic, unbound time; worst first
	Hosts     Topic = "hosts"     // each host: how far its nodes are apart (busiest less idlest, of their CPUs), share of remote traffic, workloads, last heard of; worst first
	History   Topic = "history"   // one workload of one host, or one service, by time
	Events    Topic = "events"    // decisions and outcomes with the sentence why, newest first
	Unbound   Topic = "unbound"   // who was unbound, when and why
	Gain      Topic = "gain"      // by service: what its remote reads cost and what binding would save of its CPU time, with how that is known
	Features  Topic = "features"  // by service: what a model of gains learns from
	Instances Topic = "instances" // one service's workloads, by host
	Workloads Topic = "workloads" // one host's workloads, with their nodes
)

// ErrQuestion is wrapped where a question, or a query, cannot be answered as it is.
var ErrQuestion = errors.New("no such question")

// MostRows is how many rows a person or a program may ask for.
const MostRows = 10_000

// Question asks about a time. Fields that a topic does not use are refused. A host or a
// service with a * is a pattern where a topic lists hosts or services: * is any text.
type Question struct {
	Topic       Topic
	From, Until time.Time // Until is not included
	Host        string
	Workload    string
	Service     string
	Step        time.Duration // of History; 0: some 200 points
	Sort        string        // a column; "": the topic's
	Ascending   bool
	Offset      int
	Most        int // rows; 0: 100
}

// Table is an answer. A cell is nil (unknown), string, int64, float64, bool or time.Time.
type Table struct {
	Columns []Column
	Rows    [][]any
	More    bool // there are more rows
}

// Cell is the cell of a row in the named column; nil where there is no such column.
func (t Table) Cell(row []any, name string) any {
	for i, c := range t.Columns {
		if c.Name == name && i < len(row) {
			return row[i]
		}
	}
	return nil
}

// Text is a cell that is a text; "" where it is none.
func (t Table) Text(row []any, name string) string {
	text, _ := t.Cell(row, name).(string)
	return text
}

// Number is a cell that is a number, as a float.
func (t Table) Number(row []any, name string) (float64, bool) {
	switch v := t.Cell(row, name).(type) {
	case float64:
		return v, v == v
	case int64:
		return float64(v), true
	}
	return 0, false
}

// Column is a column of a table. Its unit is "" for text and counts, "1" for ratios, "CPUs"
// for CPUs' worth of time.
type Column struct {
	Name, Unit, About string
}
