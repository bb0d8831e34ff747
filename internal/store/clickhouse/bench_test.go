// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/store/storetest"
)

// The bench's hosts send a minute at a time: each of 20 workloads has a window every 10 s. A
// hub writes the batches of several hosts together, up to 50,000 rows.
const (
	benchWorkloads = 20
	benchAtOnce    = 400 // hosts
	benchGroups    = 5
	benchWindows   = benchWorkloads * 6 * benchAtOnce // in a write
)

// benchMinute is what a group of hosts sends in a minute.
func benchMinute(r *rand.Rand, minute time.Time, number uint64, group int) []store.Batch {
	var all []store.Batch
	for h := group * benchAtOnce; h < (group+1)*benchAtOnce; h++ {
		b := store.Batch{Host: fmt.Sprintf("host-%d", h), Run: "run", Number: number}
		for i := range 6 {
			at := minute.Add(time.Duration(i) * 10 * time.Second)
			for node := range 2 {
				b.Nodes = append(b.Nodes, storetest.FullNode(r, at, 10*time.Second, node))
			}
			for w := range benchWorkloads {
				b.Windows = append(b.Windows, storetest.Full(r, at, h*benchWorkloads+w))
			}
		}
		all = append(all, b)
	}
	return all
}

// TestBenchInsert adds HOMENODE_BENCH_WINDOWS windows, a hub's write at a time, and ranks the services
// over all of them. In turn with each write the peer inserts the same windows, already by
// column, into a table of the same columns: the driver alone, without keys, attempts or nodes.
func TestBenchInsert(t *testing.T) {
	want, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_WINDOWS"))
	if err != nil {
		t.Skip("HOMENODE_BENCH_WINDOWS is not set: the bench takes minutes (scripts/bench-store.sh)")
	}
	ctx := t.Context()
	s := empty(t, time.Minute)
	if err := s.run(ctx, "CREATE TABLE plain AS windows"); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(24, 2))
	start := time.Now().Truncate(time.Hour).Add(-24 * time.Hour)
	var ours, alone time.Duration
	var ratios []float64
	windows, at := 0, start
	for number := uint64(1); windows < want; number++ {
		for group := range benchGroups {
			all := benchMinute(r, at, number, group)
			plain, _, _ := blocksOf(all, 1)
			insert := func() (took time.Duration) {
				began := time.Now()
				if err := s.insert(ctx, "plain ("+windowColumns+")", plain); err != nil {
					t.Fatal(err)
				}
				return time.Since(began)
			}
			add := func() time.Duration {
				began := time.Now()
				if n, err := s.Add(ctx, all); err != nil || n != len(all) {
					t.Fatalf("%d of %d batches added: %v", n, len(all), err)
				}
				return time.Since(began)
			}
			var a, b time.Duration
			if group%2 == 0 { // who is first takes turns
				a, b = add(), insert()
			} else {
				b, a = insert(), add()
			}
			ours, alone, windows = ours+a, alone+b, windows+benchWindows
			ratios = append(ratios, b.Seconds()/a.Seconds())
		}
		at = at.Add(time.Minute)
	}
	slices.Sort(ratios)
	if err := s.run(ctx, "DROP TABLE plain"); err != nil {
		t.Fatal(err)
	}
	q := store.Question{Topic: store.Services, From: start, Until: at}
	var took []time.Duration
	for range 5 {
		began := time.Now()
		if table := storetest.Ask(t, s, q); len(table.Rows) == 0 {
			t.Error("no services")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	fmt.Printf("figure clickhouse_windows %d\nfigure clickhouse_windows_per_s %.0f\nfigure clickhouse_alone_per_s %.0f\n", windows, float64(windows)/ours.Seconds(), float64(windows)/alone.Seconds())
	fmt.Printf("figure clickhouse_of_driver %.3f %.3f %.3f\n", alone.Seconds()/ours.Seconds(), ratios[len(ratios)/4], ratios[3*len(ratios)/4])
	fmt.Printf("figure clickhouse_ranking_s %.3f %.3f %.3f\n", took[2].Seconds(), took[0].Seconds(), took[4].Seconds())
}
