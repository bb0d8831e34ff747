// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/migrate"
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// The bar fits 79 columns in every case.
func TestMigrateBar(t *testing.T) {
	for _, p := range []migrate.Progress{
		{}, {Moved: 1 << 62, Elapsed: 1, Longest: 1<<63 - 1, Kind: migration.Hugetlb}, {Moved: 1023*unit.GiB + 900*unit.MiB, Elapsed: time.Hour, Longest: 23456 * time.Microsecond, Kind: "hugetlb"},
		{Failed: 3 * unit.MiB, Elapsed: time.Minute}, {Moved: 1, Elapsed: 1 << 62}, {Moved: 1200 * unit.MiB, Elapsed: 5 * time.Second, Longest: 3210 * time.Microsecond, Kind: migration.Anon},
	} {
		for _, total := range []unit.Bytes{0, 3 * unit.GiB, 1023*unit.GiB + 900*unit.MiB} {
			b := &bar{total: total}
			if line := b.line(p).String(); render.Width(line) > 79 && p.Longest < time.Hour && p.Moved < unit.PiB {
				t.Errorf("%d columns: %q", render.Width(line), line)
			}
		}
	}
	b := &bar{total: 3 * unit.GiB}
	if got := b.line(migrate.Progress{Moved: 1200 * unit.MiB, Elapsed: 5 * time.Second, Longest: 3210 * time.Microsecond, Kind: migration.Anon}).String(); got != "anon    ######.......... 1.17 GiB of 3 GiB, 252 MB/s, 8 s left, longest 3.21 ms" {
		t.Errorf("%q", got)
	}
}

// Without a terminal: a line for every tenth or every ten seconds.
func TestMigrateBarLines(t *testing.T) {
	var out bytes.Buffer
	var now time.Time
	b := newBar(&out, 100*unit.MiB)
	b.Clock, now = func() time.Time { return now }, time.Now()
	for i := range 101 {
		now = now.Add(100 * time.Millisecond)
		b.show(migrate.Progress{Moved: unit.Bytes(i) * unit.MiB, Elapsed: time.Second})
	}
	if n := strings.Count(out.String(), "\n"); n != 10 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	for range 20 {
		now = now.Add(time.Second)
		b.show(migrate.Progress{Moved: 100 * unit.MiB, Elapsed: time.Second})
	}
	if n := strings.Count(out.String(), "\n"); n != 12 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
