// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/store/storetest"
)

// TestBenchMonth fills a file with days of 50 workloads × 10 s, forgets as usual, and asks.
// HOMENODE_BENCH_DAYS says how many days. All but the last three are filled with windows of a minute.
func TestBenchMonth(t *testing.T) {
	days, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_DAYS"))
	if err != nil {
		t.Skip("HOMENODE_BENCH_DAYS is not set: the bench takes minutes (scripts/bench-store.sh)")
	}
	path := filepath.Join(t.TempDir(), "month.db")
	s := openAt(t, path)
	r := rand.New(rand.NewPCG(24, 1))
	start := time.Date(2026, 10, 1, 0, 0, 7, 0, time.UTC)
	end := start.Add(time.Duration(days) * 24 * time.Hour)
	began, number, windows := time.Now(), uint64(0), 0
	const workloads, part = 50, time.Minute
	for at := start; at.Before(end); at = at.Add(part) {
		number++
		// Raw rows of older days are forgotten, and a minute's row is as large whatever it is the sum of.
		period := time.Minute
		if end.Sub(at) <= 3*24*time.Hour {
			period = 10 * time.Second
		}
		b := store.Batch{Host: "host-0", Run: "run", Number: number}
		for when := at; when.Before(at.Add(part)); when = when.Add(period) {
			for node := range 2 {
				b.Nodes = append(b.Nodes, storetest.FullNode(r, when, period, node))
			}
			for w := range workloads {
				b.Windows = append(b.Windows, storetest.Full(r, when, w))
				windows++
			}
		}
		if number%200 == 0 {
			b.Decisions = []store.Decision{{At: at, Kind: "unbind", Workload: b.Windows[0].Workload, Service: b.Windows[0].Service, Rule: "mao.b", Sentence: "node 1 is 14 % busier than node 0, and the workload uses more than its quota"}}
		}
		if _, err := s.Add(t.Context(), []store.Batch{b}); err != nil {
			t.Fatal(err)
		}
		if number%360 == 0 {
			if err := s.Maintain(t.Context(), at, store.Usual); err != nil {
				t.Fatal(err)
			}
		}
	}
	took := time.Since(began)
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	worst, which := storetest.Slowest(t, s, end, time.Hour, 24*time.Hour, end.Sub(start))
	fmt.Printf("figure sqlite_bytes %d\nfigure sqlite_windows_per_s %.0f\nfigure sqlite_slowest_s %.4f %s\n", file.Size(), float64(windows)/took.Seconds(), worst.Seconds(), which)
}
