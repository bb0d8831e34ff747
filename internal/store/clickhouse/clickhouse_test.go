// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"homenode/internal/store"
	"homenode/internal/store/storetest"
)

const lease = 3 * time.Second

// server is the address that HOMENODE_CLICKHOUSE names.
func server(t *testing.T) string {
	address := os.Getenv("HOMENODE_CLICKHOUSE")
	if address == "" {
		t.Skip("HOMENODE_CLICKHOUSE names no server: scripts/test-clickhouse.sh starts one")
	}
	return address
}

// empty is a store in a new database.
func empty(t *testing.T, lease time.Duration) *Store {
	t.Helper()
	address := server(t)
	name := fmt.Sprintf("test_%d", time.Now().UnixNano())
	admin, err := driver.Open(&driver.Options{Addr: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Address: address, Database: name, Lease: lease, RollEvery: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := admin.Exec(context.Background(), "DROP DATABASE "+name); err != nil {
			t.Error(err)
		}
		admin.Close()
	})
	return s
}

// patient waits until what was added can be rolled up.
type patient struct{ *Store }

func (p patient) Maintain(ctx context.Context, now time.Time, keep store.Retention) error {
	time.Sleep(lease + 2*time.Second)
	return p.Store.Maintain(ctx, now, keep)
}

func TestStore(t *testing.T) {
	server(t)
	storetest.Run(t, func(t *testing.T) store.Store { return patient{empty(t, lease)} })
}
