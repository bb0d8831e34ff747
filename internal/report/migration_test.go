// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"homenode/internal/golden"
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func migrationText(t *testing.T, r migration.Report, o render.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Migration(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const mib = unit.MiB

// census has two nodes: the bytes on node 0 and on node 1, by kind.
func census(by map[migration.Kind][2]unit.Bytes) (c migration.Census) {
	c.Processes, c.Files, c.Foreign = 3, 12, unit.Some(4*mib)
	for _, k := range migration.Kinds() {
		c.Add(k, 0, by[k][0])
		c.Add(k, 1, by[k][1])
	}
	return c
}

func dryRun() migration.Report {
	r := migration.Report{
		Schema: migration.Schema, Target: "cgroup /demo/a", Mode: migration.Live, To: set.FromNodes(1), Rate: 200e6, MaxStall: 20 * time.Millisecond,
		Clock: "CLOCK_MONOTONIC", How: unit.HowMeasured, Outcome: migration.Planned,
		Before: census(map[migration.Kind][2]unit.Bytes{
			migration.Anon: {1536 * mib, 512 * mib}, migration.THP: {1024 * mib, 0}, migration.Shmem: {64 * mib, 3 * mib},
			migration.File: {12*mib + 300*unit.KiB, 0}, migration.Cache: {612 * mib, 1 * mib},
		}),
	}
	const by = "profile.json, node 0 to node 1"
	r.Estimate = migration.Estimate{
		Bytes: r.Before.Elsewhere(r.From, r.To), Seconds: unit.Estimated(17.03, "the rate that was asked for"),
		CPUSeconds: unit.Measured(2.21, by), BandwidthShare: unit.ValueOf[unit.Ratio](0.031, unit.HowMeasured, by),
	}
	return r
}

func complete() migration.Report {
	r := dryRun()
	r.Outcome = migration.Complete
	var res migration.Result
	after := census(map[migration.Kind][2]unit.Bytes{
		migration.Anon: {0, 2048 * mib}, migration.THP: {0, 1024 * mib}, migration.Shmem: {0, 67 * mib}, migration.File: {0, 12*mib + 300*unit.KiB}, migration.Cache: {0, 613 * mib},
	})
	for _, row := range r.Before.Rows {
		res.Of(row.Kind).Moved = row.Elsewhere(r.From, r.To)
	}
	res.Calls, res.Time, res.CPU, res.Longest, res.Batch, res.Workers = 12345, 16900*time.Millisecond, 2050*time.Millisecond, 12340*time.Microsecond, 128, 1
	res.Complete = true
	r.Result, r.After = unit.Some(res), unit.Some(after)
	return r
}

func partial() migration.Report {
	r := complete()
	r.Outcome, r.LeaveShared, r.Before.Unread, r.Before.Foreign = migration.Partial, true, 1, unit.Some[unit.Bytes](0)
	r.Before.AddForeign(migration.Shmem, 0, 64*mib)
	r.Before.AddPool(2*mib, 0, 6*mib)
	r.Before.AddForeignPool(2*mib, 0, 4*mib)
	res, _ := r.Result.Get()
	res.Kinds = nil
	anon := res.Of(migration.Anon)
	anon.Moved, anon.Gone = 1500*mib, 20*mib
	anon.Fail("EBUSY", 12*mib)
	anon.Fail("ENOMEM", 4*mib)
	res.Of(migration.THP).Moved = 1024 * mib
	res.Of(migration.Shmem).Fail("left: processes outside of it use it too", 64*mib)
	res.Of(migration.Hugetlb).Moved = 2 * mib
	res.Of(migration.File).Fail("EACCES", 12*mib+300*unit.KiB)
	res.Of(migration.Cache).Moved = 612 * mib
	res.Over, res.OverWhy, res.Retried = 2, "a huge page is moved in one call, and takes 24 ms", 3072
	res.Longest = 24 * time.Millisecond
	res.Complete, res.Stopped, res.Problems = false, "interrupted", []string{"process 4711 (worker) ended meanwhile", "/var/lib/data/table.bin was cut short meanwhile"}
	r.Result = unit.Some(res)
	r.After = unit.Some(census(map[migration.Kind][2]unit.Bytes{
		migration.Anon: {16 * mib, 2012 * mib}, migration.THP: {0, 1024 * mib}, migration.Shmem: {64 * mib, 3 * mib}, migration.File: {12*mib + 300*unit.KiB, 0}, migration.Cache: {0, 613 * mib},
	}))
	r.Notes = []string{"without CAP_SYS_NICE, pages that several processes map stay where they are (EACCES)"}
	return r
}

func frozen() migration.Report {
	r := complete()
	r.Mode, r.Rate, r.MaxStall, r.Frozen = migration.Freeze, 0, 0, unit.Some(0.974)
	r.Estimate.Seconds, r.Estimate.CPUSeconds = unit.Estimated(2.1, "0.65 s/GB (MAO); one worker; workers side by side are not modelled"), unit.Estimated(2.1, "0.65 s/GB (MAO)")
	r.Estimate = r.Estimate.BesideModel()
	res, _ := r.Result.Get()
	res.Time, res.CPU, res.Workers, res.Batch = 951*time.Millisecond, 2900*time.Millisecond, 4, 512
	r.Result, r.How, r.Clock = unit.Some(res), unit.HowModelled, "model clock of the lab, 50 cycles a µs"
	return r
}

func hot() migration.Report {
	r := complete()
	r.Mode = migration.Hot
	res, _ := r.Result.Get()
	res.Kinds = nil
	res.Of(migration.Anon).Moved = 96 * mib
	res.Of(migration.Cache).Moved = 4 * mib
	res.Time, res.CPU = 524*time.Millisecond, 70*time.Millisecond
	r.Result = unit.Some(res)
	r.Estimate = r.Estimate.Part(100 * mib)
	r.After = unit.Some(census(map[migration.Kind][2]unit.Bytes{
		migration.Anon: {1440 * mib, 608 * mib}, migration.THP: {1024 * mib, 0}, migration.Shmem: {64 * mib, 3 * mib}, migration.File: {12*mib + 300*unit.KiB, 0}, migration.Cache: {608 * mib, 5 * mib},
	}))
	r.Heat = unit.Some(migration.Heat{Source: "idle page tracking", How: unit.HowMeasured, Unit: "page", For: 2 * time.Second, Bytes: 100 * mib,
		Others: []string{"PMU samples: this CPU has no address samples", "DAMON: the kernel is built without CONFIG_DAMON_SYSFS"}})
	return r
}

func nothing() migration.Report {
	r := dryRun()
	r.Outcome = migration.Nothing
	r.Before = census(map[migration.Kind][2]unit.Bytes{migration.Anon: {0, 512 * mib}, migration.Cache: {0, 3 * mib}})
	r.Estimate = migration.Estimate{}
	return r
}

// eight nodes, of which two are moved from: more columns than a narrow terminal has.
func eight() migration.Report {
	r := complete()
	r.From, r.To = set.FromNodes(2, 3), set.FromNodes(0, 1)
	r.Before = migration.Census{Processes: 1, Files: 1}
	for node := range 8 {
		r.Before.Add(migration.Anon, node, unit.Bytes(node+1)*1100*mib)
	}
	r.Before.Swapped = 3 * mib
	r.Outcome, r.After = migration.Partial, unit.None[migration.Census]()
	return r
}

// hostile has control sequences in every text.
func hostile() migration.Report {
	const evil = "\x1b[2J\u202eevil\nname\xff"
	r := partial()
	h, _ := hot().Heat.Get()
	h.Source, h.Unit, h.Others = evil, evil, []string{evil}
	r.Heat = unit.Some(h)
	r.Target, r.Clock, r.Mode, r.Notes = evil+strings.Repeat("x", 300), evil, evil, []string{evil}
	res, _ := r.Result.Get()
	res.Stopped, res.OverWhy, res.Problems = evil, evil, []string{evil}
	res.Of(migration.Anon).Fail(evil, mib)
	res.Time, res.Longest = 1<<62, -1
	r.Result = unit.Some(res)
	r.Before.Problems = []string{evil}
	r.Before.Add(migration.Anon, 1023, 1<<62)
	r.Estimate.CPUSeconds = unit.Estimated(1e300, evil)
	return r
}

var migrations = map[string]func() migration.Report{
	"dry-run": dryRun, "complete": complete, "partial": partial, "freeze": frozen, "hot": hot, "nothing": nothing, "eight": eight, "hostile": hostile,
	"empty": func() migration.Report { return migration.Report{} },
}

func TestDecisionText(t *testing.T) {
	for name, make := range migrations {
		golden.Check(t, filepath.Join("testdata", "migration", name+"-80.txt.golden"), migrationText(t, make(), render.TextOptions{Width: 80, UTF8: true}))
	}
	golden.Check(t, "testdata/migration/eight-160.txt.golden", migrationText(t, eight(), render.TextOptions{Width: 160, UTF8: true}))
	golden.Check(t, "testdata/migration/partial-120-ascii.txt.golden", migrationText(t, partial(), render.TextOptions{Width: 120}))
}

// No line is wider than the terminal, no control sequence gets through, and ASCII is
// ASCII.
func TestDecisionTextFits(t *testing.T) {
	for name, make := range migrations {
		for _, width := range []int{60, 80, 132} {
			for _, utf8 := range []bool{true, false} {
				for line := range strings.Lines(migrationText(t, make(), render.TextOptions{Width: width, UTF8: utf8})) {
					line = strings.TrimSuffix(line, "\n")
					bad := func(r rune) bool { return !unicode.IsPrint(r) || !utf8 && r > '~' }
					if render.Width(line) > width || strings.IndexFunc(line, bad) >= 0 {
						t.Errorf("%s at %d: %d columns: %q", name, width, render.Width(line), line)
					}
				}
			}
		}
	}
}

// The table's sums are the report's, for any report.
func TestPropertySums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	amount := func() unit.Bytes { return unit.Bytes(r.IntN(3)) * unit.Bytes(r.IntN(1000)) * 4 * unit.KiB }
	for range 2000 {
		rep := migration.Report{To: set.FromNodes(r.IntN(4)), From: set.FromNodes(r.IntN(4))}
		if r.IntN(2) == 0 {
			rep.From = set.NodeSet{}
		}
		rep.From = rep.From.Minus(rep.To)
		var after migration.Census
		var res migration.Result
		for _, k := range migration.Kinds() {
			for node := range 4 {
				rep.Before.Add(k, node, amount())
				after.Add(k, node, amount())
			}
			if r.IntN(2) == 0 {
				x := res.Of(k)
				x.Moved, x.Gone = amount(), amount()
				x.Fail("EBUSY", amount())
				x.Fail("EIO", amount())
			}
		}
		rep.Result, rep.After = unit.Some(res), unit.Some(after)
		checkSums(t, rep, res, after)
	}
}

func checkSums(t *testing.T, rep migration.Report, res migration.Result, after migration.Census) {
	t.Helper()
	all := kindSums(rep)
	sum := all[len(all)-1]
	var parts kindSum
	parts.Before = map[int]unit.Bytes{}
	parts.Moved, parts.Gone, parts.Failed, parts.After = unit.Some[unit.Bytes](0), unit.Some[unit.Bytes](0), unit.Some[unit.Bytes](0), unit.Some[unit.Bytes](0)
	for _, x := range all[:len(all)-1] {
		parts.addKind(x)
		if x.Home+x.ToMove+x.Other != kindByNode(x) {
			t.Fatalf("%s: %d at home, %d to move and %d aside are not %d by node", x.Kind, x.Home, x.ToMove, x.Other, kindByNode(x))
		}
	}
	for _, c := range []struct {
		what      string
		got, want unit.Bytes
	}{
		{"before", kindByNode(sum), rep.Before.Total()}, {"of the kinds", kindByNode(parts), rep.Before.Total()},
		{"to move", sum.ToMove, rep.Before.Elsewhere(rep.From, rep.To)}, {"moved", sum.Moved.Or(-1), res.Moved()},
		{"stayed", sum.Failed.Or(-1), res.Failed()}, {"after", sum.After.Or(-1), after.Elsewhere(rep.From, rep.To)},
		{"moved, by kind", parts.Moved.Or(-1), res.Moved()}, {"gone", sum.Gone.Or(-1), parts.Gone.Or(-2)},
	} {
		if c.got != c.want {
			t.Fatalf("%s: the table has %d, the report %d", c.what, c.got, c.want)
		}
	}
}

func kindByNode(x kindSum) (sum unit.Bytes) {
	for _, b := range x.Before {
		sum += b
	}
	return sum
}

// The report cleans a copy.
func TestCleanLeavesTheCallers(t *testing.T) {
	r := hostile()
	migrationText(t, r, render.TextOptions{})
	res, _ := r.Result.Get()
	if !strings.Contains(res.Problems[0], "\x1b") || !strings.Contains(r.Notes[0], "\x1b") {
		t.Error("the caller's report was changed")
	}
}

func TestFormat(t *testing.T) {
	for got, want := range map[string]string{
		bytesCell(0): "-", bytesCell(3 * unit.GiB / 2): "1.5 GiB",
		seconds(unit.Some(-1.0)): unknown, seconds(unit.Some(1e12)): unknown, seconds(unit.Some(0.5)): "500 ms",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestTextTellsWriteErrors(t *testing.T) {
	if err := Migration(full{}, complete(), render.TextOptions{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

// The JSON form: what is written is read back, strictly, and unchanged.
func TestParityJSON(t *testing.T) {
	var all bytes.Buffer
	for _, name := range []string{"dry-run", "complete", "partial", "freeze", "hot", "nothing"} {
		r := migrations[name]()
		data, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := migration.DecodeReport(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(again, data) || migrationText(t, back, render.TextOptions{}) != migrationText(t, r, render.TextOptions{}) {
			t.Errorf("%s: it differs when read back: %v\n%s\n%s", name, err, data, again)
		}
		if _, err := migration.DecodeReport(append(bytes.TrimSuffix(data, []byte("}")), []byte(`,"more":1}`)...)); err == nil {
			t.Errorf("%s: an unknown field is read", name)
		}
		all.Write(append(data, '\n'))
	}
	golden.Check(t, "../../schema/migration_report.golden", all.String())
}

// Text that is no report is refused, and a report can be shown and written again.
func FuzzDecodeReport(f *testing.F) {
	for name, make := range migrations {
		data, err := make().Encode()
		if err == nil {
			f.Add(data)
		} else if name != "empty" {
			f.Fatal(name, err)
		}
	}
	f.Add([]byte(`{"schema":1,"target":"","mode":"x","from":"","to":"0","rate_bytes_per_s":0,"max_stall_ns":0,"clock":"","how":"unknown","before":{"rows":[{"kind":"anon","nodes":[{"node":-1,"bytes":-5}]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := migration.DecodeReport(data)
		if err != nil {
			if r.Schema != 0 || r.Target != "" || r.Before.Rows != nil {
				t.Fatalf("an error, and %+v", r)
			}
			return
		}
		if _, err := r.Encode(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(migrationText(t, r, render.TextOptions{Width: 80})) {
			if line = strings.TrimSuffix(line, "\n"); render.Width(line) > 80 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("%q", line)
			}
		}
	})
}
