// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"homenode/internal/hub/fleettest"
	"homenode/internal/store"
	"homenode/internal/store/clickhouse"
	"homenode/internal/store/sqlite"
)

// benchEach is how many workloads a host of the bench has.
const benchEach = 20

// TestBenchFleet fills a store with HOMENODE_BENCH_HOSTS hosts, a window of each workload in each
// of HOMENODE_BENCH_HOURS hours (1), rolls them up, and measures every page. HOMENODE_BENCH_KEEP keeps the file, or the database of HOMENODE_CLICKHOUSE.
func TestBenchFleet(t *testing.T) {
	hosts, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_HOSTS"))
	if err != nil {
		t.Skip("HOMENODE_BENCH_HOSTS is not set: the bench takes minutes (scripts/bench-fleet.sh)")
	}
	hours, err := strconv.Atoi(cmp.Or(os.Getenv("HOMENODE_BENCH_HOURS"), "1"))
	if err != nil || hours < 1 || hours > 24 {
		t.Fatal("HOMENODE_BENCH_HOURS: want 1 to 24")
	}
	f := fleettest.Fake{Fleet: fleettest.Fleet{Hosts: hosts, Each: benchEach, Services: 1000, Until: noon.Add(-time.Minute), Length: 10 * time.Second}}
	for name, open := range map[string]func(*testing.T) store.Store{"sqlite": benchFile, "clickhouse": benchServer} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			fill(t, s, f.Fleet, hours, name)
			rollUp(t, s, name)
			measure(t, s, &f, name)
		})
	}
}

func benchFile(t *testing.T) store.Store {
	s, err := sqlite.Open(t.Context(), filepath.Join(cmp.Or(os.Getenv("HOMENODE_BENCH_KEEP"), t.TempDir()), "fleet.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func benchServer(t *testing.T) store.Store {
	at := os.Getenv("HOMENODE_CLICKHOUSE")
	if at == "" {
		t.Skip("HOMENODE_CLICKHOUSE names no server: scripts/bench-fleet.sh starts one")
	}
	const name = "bench_fleet"
	admin, err := driver.Open(&driver.Options{Addr: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	if err := admin.Exec(t.Context(), "CREATE DATABASE IF NOT EXISTS "+name); err != nil {
		t.Fatal(err)
	}
	s, err := clickhouse.Open(t.Context(), clickhouse.Options{Address: at, Database: name, RollEvery: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if os.Getenv("HOMENODE_BENCH_KEEP") == "" {
			if err := admin.Exec(context.Background(), "DROP DATABASE "+name); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// fill adds a batch of each host and hour, many at a time. What is there stays as it is.
func fill(t *testing.T, s store.Store, f fleettest.Fleet, hours int, name string) {
	t.Helper()
	const atOnce = 500
	began, added := time.Now(), 0
	last := f.Until
	for hour := range hours {
		f.Until = last.Add(-time.Duration(hour) * time.Hour)
		for h := 0; h < f.Hosts; h += atOnce {
			var all []store.Batch
			for i := h; i < min(h+atOnce, f.Hosts); i++ {
				b := f.Batch(i, 1)
				if b.Number = uint64(hour + 1); hour > 0 {
					b.Decisions, b.Outcomes = nil, nil
				}
				all = append(all, b)
			}
			n, err := s.Add(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			if added += n; n == 0 && h == 0 {
				break // it was kept
			}
		}
	}
	fmt.Printf("figure fleet_fill_s %s %.1f %d\n", name, time.Since(began).Seconds(), added*f.Each)
}

// rollUp makes minutes and hours of the rows: a store may do that when they come. Rows count for
// it when the lease of their write, 30 s, is over.
func rollUp(t *testing.T, s store.Store, name string) {
	t.Helper()
	if name == "clickhouse" {
		time.Sleep(33 * time.Second)
	}
	began := time.Now()
	if err := s.Maintain(t.Context(), noon, store.Usual); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("figure fleet_roll_s %s %.1f\n", name, time.Since(began).Seconds())
}

// measure loads each page and asks each topic three times, and prints the medians. The time is
// odd, so that all levels of rows take part.
func measure(t *testing.T, s store.Store, f *fleettest.Fake, name string) {
	now := noon.Add(17*time.Minute + 3*time.Second)
	h := Handler(Options{Store: s, Now: func() time.Time { return now }, Health: healthOf, Timeout: 10 * time.Minute})
	all := pages(f)
	all["hosts filtered"] = "/hosts?q=00042"
	for _, page := range sortedNames(all) {
		t.Run("page "+page, func(t *testing.T) {
			fmt.Printf("figure fleet_page_s %s %.3f %s\n", name, median(func() {
				if got := get(h, all[page]); got.Code != http.StatusOK {
					t.Errorf("%d: %.300s", got.Code, got.Body)
				}
			}), page)
		})
	}
	for _, topic := range store.Topics {
		q := store.Question{Topic: topic, From: now.Add(-24 * time.Hour), Until: now}
		switch topic {
		case store.Instances, store.History:
			q.Service = f.Service(0)
		case store.Workloads, store.Nodes:
			q.Host = f.Host(0)
		}
		t.Run("query "+string(topic), func(t *testing.T) {
			fmt.Printf("figure fleet_query_s %s %.3f %s\n", name, median(func() {
				if a, err := s.Ask(t.Context(), q); err != nil || len(a.Rows) == 0 {
					t.Errorf("%d rows, %v", len(a.Rows), err)
				}
			}), topic)
		})
	}
}

func sortedNames(all map[string]string) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// median of three runs, in seconds.
func median(run func()) float64 {
	var took [3]float64
	for i := range took {
		began := time.Now()
		run()
		took[i] = time.Since(began).Seconds()
	}
	slices.Sort(took[:])
	return took[1]
}
