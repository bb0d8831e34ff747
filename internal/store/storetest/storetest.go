// SPDX-License-Identifier: Apache-2.0

// Package storetest is what every store is held to.
//
//	windows of a seed ─▶ Store ─▶ questions ─┬─ the same?
//	                  └▶ sums in plain Go ───┘
//
// Not for: product code, or how fast a store is.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/store"
	"homenode/internal/unit"
)

// Start is when the windows of tests begin: not at a full hour.
var Start = time.Date(2026, 11, 20, 22, 58, 30, 0, time.UTC)

// Run holds a store to everything. open makes an empty one.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"twice is once": twice, "all bytes": allBytes, "sums": sums, "retention": retention, "topics": topics,
		"events": events, "hosts": hosts, "refused": refused, "sql": query, "export": export, "at once": atOnce, "ended": ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// nodeCPUs is how many each node of Batches has.
const nodeCPUs = 8

// Batches are windows of a seed: workloads × rounds of 10 s, in batches of a host and a minute.
func Batches(seed uint64, workloads, rounds int) []store.Batch {
	r := rand.New(rand.NewPCG(seed, 24))
	var all []store.Batch
	for first := 0; first < rounds; first += 6 {
		for h := range 2 {
			b := store.Batch{Host: fmt.Sprintf("host-%d", h), Run: "run", Number: uint64(first/6 + 1)}
			for round := first; round < min(first+6, rounds); round++ {
				at := Start.Add(time.Duration(round) * 10 * time.Second)
				for node := range 2 {
					b.Nodes = append(b.Nodes, store.Node{At: at, Length: 10 * time.Second, Node: node, CPUs: nodeCPUs, Busy: unit.Some(float64(h+1) * float64(node+1)), Memory: unit.Some(unit.GiB), Free: unit.Some(unit.MiB), BusyHow: unit.HowModelled, MemoryHow: unit.HowMeasured})
				}
				for w := h; w < workloads; w += 2 {
					b.Windows = append(b.Windows, Window(r, at, w))
				}
			}
			all = append(all, b)
		}
	}
	return all
}

// Window is one of workload number w: some count reads, some only guess, some know nothing.
func Window(r *rand.Rand, at time.Time, w int) store.Window {
	win := store.Window{
		At: at, Length: 10 * time.Second, Workload: fmt.Sprintf("/demo/%d", w), Service: fmt.Sprintf("service-%d", w%5), Owner: "systemd", Name: fmt.Sprintf("w%d", w),
		Approved: w%2 == 0, CPU: unit.Some(r.Float64() * 4), MSR: unit.Some(unit.Ratio(r.Float64())), CPUByNode: []float64{1, 0.5}, AnonByNode: []unit.Bytes{1 << 20, 2 << 20},
		CPUHow: unit.HowMeasured, CyclesHow: unit.HowMeasured, PagesHow: unit.HowMeasured,
	}
	if r.IntN(2) == 0 {
		win.Bound = []int{w % 2}
	}
	switch {
	case w%5 < 2:
		win.LocalReads, win.RemoteReads = unit.Some(r.Uint64N(1e9)), unit.Some(r.Uint64N(1e9))
		win.LocalHow, win.LocalFrom, win.Traffic = unit.HowMeasured, "perf", unit.Some(unit.Bytes(r.Int64N(1e12)))
		if w%5 == 1 && r.IntN(3) == 0 {
			win.LocalHow = unit.HowModelled
		}
		win.TrafficHow = win.LocalHow
		win.MBW, win.NPMR = unit.Some(float64(win.Traffic.Or(0))/10), unit.Some(unit.Ratio(1/float64(1+w)))
		win.RMBR = unit.Some(unit.Ratio(float64(win.RemoteReads.Or(0)) / float64(win.RemoteReads.Or(0)+win.LocalReads.Or(0)+1)))
		if r.IntN(10) == 0 { // it sleeps
			win.LocalReads, win.RemoteReads, win.LocalHow, win.LocalFrom = unit.Some(uint64(0)), unit.Some(uint64(0)), unit.HowUnknown, ""
		}
	case w%5 < 4:
		win.Local, win.LocalHow, win.LocalFrom = unit.Some(unit.Ratio(r.Float64())), unit.HowEstimated, "pages"
	}
	return win
}

// sum is the brute-force twin of a service's row.
type sum struct {
	instances               map[string]bool
	local, all              float64
	guess, guessCPU         float64
	how, guessHow, traffic  unit.Source // traffic: 0 is unknown
	cpu, bound, length, msr float64
}

// Expect adds windows up, service by service, without a store.
func expect(batches []store.Batch, from, until time.Time) map[string]*sum {
	all := map[string]*sum{}
	for _, b := range batches {
		for _, w := range b.Windows {
			if w.At.Before(from) || !w.At.Before(until) {
				continue
			}
			s := all[w.Service]
			if s == nil {
				s = &sum{instances: map[string]bool{}, how: unit.HowMeasured, guessHow: unit.HowMeasured}
				all[w.Service] = s
			}
			s.add(b.Host, w)
		}
	}
	return all
}

func (s *sum) add(host string, w store.Window) {
	s.instances[host+" "+w.Workload] = true
	seconds := w.Length.Seconds()
	cpu := w.CPU.Or(0) * seconds
	s.length, s.cpu, s.msr = s.length+seconds, s.cpu+cpu, s.msr+float64(w.MSR.Or(0))*cpu
	if len(w.Bound) > 0 {
		s.bound += seconds
	}
	if w.TrafficHow != unit.HowUnknown && (s.traffic == unit.HowUnknown || w.TrafficHow < s.traffic) {
		s.traffic = w.TrafficHow
	}
	if local, ok := w.LocalReads.Get(); ok && local+w.RemoteReads.Or(0) > 0 {
		s.local += float64(local)
		s.all += float64(local) + float64(w.RemoteReads.Or(0))
		s.how = min(s.how, w.LocalHow)
	} else if local, ok := w.Local.Get(); ok {
		s.guess += float64(local) * cpu
		s.guessCPU += cpu
		s.guessHow = min(s.guessHow, w.LocalHow)
	}
}

func (s *sum) ratio() (any, string) {
	switch {
	case s.all > 0:
		return s.local / s.all, s.how.String()
	case s.guessCPU > 0:
		return s.guess / s.guessCPU, s.guessHow.String()
	}
	return nil, "unknown"
}

// add keeps batches, those of an hour at once.
func add(t *testing.T, s store.Store, batches []store.Batch) {
	t.Helper()
	for part := range slices.Chunk(batches, 120) {
		if n, err := s.Add(t.Context(), part); err != nil || n != len(part) {
			t.Fatalf("added %d of %d batches: %v", n, len(part), err)
		}
	}
}

// Ask asks, and checks what holds of every table.
func Ask(t *testing.T, s store.Store, q store.Question) store.Table {
	t.Helper()
	table, err := s.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Columns {
		if c.Name == "" || c.About == "" {
			t.Errorf("%s: column %+v does not say what it is", q.Topic, c)
		}
	}
	for _, row := range table.Rows {
		for i, cell := range row {
			switch cell.(type) {
			case nil, string, int64, float64, bool, time.Time:
			default:
				t.Errorf("%s: %s is a %T", q.Topic, table.Columns[i].Name, cell)
			}
		}
	}
	return table
}

// Cell is a row's cell by its column's name.
func Cell(t *testing.T, table store.Table, row int, name string) any {
	t.Helper()
	for i, c := range table.Columns {
		if c.Name == name && row < len(table.Rows) {
			return table.Rows[row][i]
		}
	}
	t.Fatalf("no column %s, or no row %d of %d", name, row, len(table.Rows))
	return nil
}

func column(t *testing.T, table store.Table, name string) (all []any) {
	for i := range table.Rows {
		all = append(all, Cell(t, table, i, name))
	}
	return all
}

// near compares cells; sums of floats differ with their order.
func near(a, b any) bool {
	x, ok := a.(float64)
	y, both := b.(float64)
	if ok && both {
		return math.Abs(x-y) <= 1e-9*max(1, math.Abs(x), math.Abs(y))
	}
	return a == b
}

func compare(t *testing.T, s store.Store, batches []store.Batch, from, until time.Time) {
	t.Helper()
	table := Ask(t, s, store.Question{Topic: store.Services, From: from, Until: until})
	want := expect(batches, from, until)
	if len(table.Rows) != len(want) {
		t.Errorf("%s to %s: %d services, want %d", from, until, len(table.Rows), len(want))
	}
	for i := range table.Rows {
		w := want[Cell(t, table, i, "service").(string)]
		if w == nil {
			t.Errorf("%s to %s: unknown service %v", from, until, table.Rows[i])
			continue
		}
		ratio, how := w.ratio()
		for name, v := range map[string]any{"instances": int64(len(w.instances)), "local_ratio": ratio, "local_how": how, "cpu_s": w.cpu, "cpu_how": "measured", "traffic_how": w.traffic.String(), "unbound_ratio": 1 - w.bound/w.length} {
			if got := Cell(t, table, i, name); !near(got, v) {
				t.Errorf("%s to %s: %v: %s is %v, want %v", from, until, table.Rows[i][0], name, got, v)
			}
		}
	}
}

func end(batches []store.Batch) time.Time {
	return batches[len(batches)-1].Windows[0].At.Add(time.Hour)
}

func twice(t *testing.T, s store.Store) {
	batches := Batches(1, 6, 12)
	add(t, s, batches)
	for _, again := range [][]store.Batch{batches, batches[1:2], nil} {
		if n, err := s.Add(t.Context(), again); n != 0 || err != nil {
			t.Errorf("%d of %d batches were new, %v", n, len(again), err)
		}
	}
	// Also within one Add, and with other content.
	next := Batches(2, 6, 18)[4:]
	if n, err := s.Add(t.Context(), append(slices.Clone(next), next...)); n != len(next) || err != nil {
		t.Errorf("%d batches were new, %v", n, err)
	}
	other := batches[0]
	other.Windows = other.Windows[:1]
	other.Windows[0].At = other.Windows[0].At.Add(time.Second)
	if n, err := s.Add(t.Context(), []store.Batch{other}); n != 0 || err != nil {
		t.Errorf("a key with other content was new: %d, %v", n, err)
	}
	compare(t, s, append(Batches(1, 6, 12), next...), Start, Start.Add(time.Hour))
}

func allBytes(t *testing.T, s store.Store) {
	var names []string
	every := make([]byte, 0, 256)
	for c := range 256 {
		every = append(every, byte(c))
		names = append(names, "/"+string([]byte{byte(c)})+"x")
	}
	names = append(names, "/"+string(every), "/'; DROP TABLE windows; --", `/\'`+"\\", "/\x00\x00", "/ä\u2028", "/?$1:x{a:String}")
	b := store.Batch{Host: "h'\\\x00\xff", Run: "r\xfe", Number: 1}
	for _, name := range names {
		b.Windows = append(b.Windows, store.Window{At: Start, Length: time.Second, Workload: name, Service: name, Name: name, CPU: unit.Some(1.0)})
	}
	add(t, s, []store.Batch{b})
	table := Ask(t, s, store.Question{Topic: store.Workloads, Host: b.Host, From: Start, Until: Start.Add(time.Hour), Most: 1000})
	var got []string
	for i := range table.Rows {
		name := Cell(t, table, i, "workload").(string)
		got = append(got, name)
		if Cell(t, table, i, "service") != name || Cell(t, table, i, "name") != name {
			t.Errorf("%q has another service or name", name)
		}
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("%d names came back, of %d: %q", len(got), len(names), got)
	}
	for _, name := range names {
		q := store.Question{Topic: store.History, Host: b.Host, Workload: name, From: Start, Until: Start.Add(time.Second)}
		if rows := Ask(t, s, q).Rows; len(rows) != 1 {
			t.Errorf("%q: %d rows", name, len(rows))
		}
	}
}

// sums: every time, cut anywhere, gives the sums of its raw rows.
func sums(t *testing.T, s store.Store) {
	batches := Batches(3, 10, 1500)
	late := []store.Batch{batches[7], batches[100], batches[200]}
	rest := slices.DeleteFunc(slices.Clone(batches), func(b store.Batch) bool {
		return slices.ContainsFunc(late, func(l store.Batch) bool { return l.Host == b.Host && l.Number == b.Number })
	})
	add(t, s, rest)
	maintain(t, s, end(batches), store.Usual)
	add(t, s, late)
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 20 {
		if i == 10 {
			maintain(t, s, end(batches).Add(2*time.Hour), store.Usual)
		}
		from := Start.Add(time.Duration(r.Int64N(int64(5 * time.Hour))))
		compare(t, s, batches, from, from.Add(time.Millisecond+time.Duration(r.Int64N(int64(5*time.Hour)))))
	}
	compare(t, s, batches, Start.Truncate(time.Hour), Start.Add(5*time.Hour).Truncate(time.Hour))
	for _, step := range []time.Duration{30 * time.Second, 5 * time.Minute, time.Hour} {
		history(t, s, batches, step)
	}
}

func history(t *testing.T, s store.Store, batches []store.Batch, step time.Duration) {
	table := Ask(t, s, store.Question{Topic: store.History, Service: "service-1", From: Start, Until: end(batches), Step: step, Most: 10_000})
	if len(table.Rows) < 4 {
		t.Errorf("a step of %s has %d rows", step, len(table.Rows))
	}
	for i := range table.Rows {
		at := Cell(t, table, i, "at").(time.Time)
		if !at.Equal(at.Truncate(step)) {
			t.Errorf("step %s begins at %s", step, at)
		}
		from := at
		if from.Before(Start) {
			from = Start
		}
		want := expect(batches, from, at.Add(step))["service-1"]
		ratio, how := want.ratio()
		if !near(Cell(t, table, i, "local_ratio"), ratio) || Cell(t, table, i, "local_how") != how || !near(Cell(t, table, i, "msr_ratio"), want.msr/want.cpu) {
			t.Errorf("step %s at %s: %v, want %v %s and %v", step, at, table.Rows[i], ratio, how, want.msr/want.cpu)
		}
	}
}

func maintain(t *testing.T, s store.Store, now time.Time, keep store.Retention) {
	t.Helper()
	if err := s.Maintain(t.Context(), now, keep); err != nil {
		t.Fatal(err)
	}
}

// retention: what is left of raw rows, and then of minutes, has the same sums.
func retention(t *testing.T, s store.Store) {
	batches := Batches(4, 6, 1500)
	add(t, s, batches)
	compare(t, s, batches, Start, end(batches))
	day := 24 * time.Hour
	now := Start.Add(3 * day)
	maintain(t, s, now, store.Retention{Raw: day, Minutes: 10 * day, Hours: 100 * day, Events: 100 * day})
	minute := Start.Truncate(time.Minute)
	compare(t, s, batches, minute.Add(7*time.Minute), minute.Add(93*time.Minute))
	// A cut inside a minute moves outwards, as raw rows are gone.
	table := Ask(t, s, store.Question{Topic: store.Services, From: minute.Add(90 * time.Second), Until: minute.Add(100 * time.Second)})
	want := expect(batches, minute.Add(60*time.Second), minute.Add(120*time.Second))
	if got := Cell(t, table, 0, "cpu_s"); !near(got, want[Cell(t, table, 0, "service").(string)].cpu) {
		t.Errorf("part of a forgotten minute: %v", table.Rows)
	}
	maintain(t, s, now.Add(20*day), store.Retention{Raw: day, Minutes: 10 * day, Hours: 100 * day, Events: 100 * day})
	compare(t, s, batches, Start.Truncate(time.Hour), end(batches).Truncate(time.Hour))
	maintain(t, s, now.Add(200*day), store.Retention{Raw: day, Minutes: 10 * day, Hours: 100 * day, Events: 100 * day})
	if rows := Ask(t, s, store.Question{Topic: store.Services, From: Start, Until: end(batches)}).Rows; len(rows) != 0 {
		t.Errorf("after the last retention: %v", rows)
	}
}

func refused(t *testing.T, s store.Store) {
	hour := func(q store.Question) store.Question {
		q.From, q.Until = Start, Start.Add(time.Hour)
		return q
	}
	for name, q := range map[string]store.Question{
		"no topic":       hour(store.Question{}),
		"no time":        {Topic: store.Services},
		"backwards":      {Topic: store.Services, From: Start, Until: Start.Add(-1)},
		"unused field":   hour(store.Question{Topic: store.Services, Host: "h"}),
		"needed field":   hour(store.Question{Topic: store.Instances}),
		"history of all": hour(store.Question{Topic: store.History, Workload: "/a"}),
		"step":           hour(store.Question{Topic: store.Services, Step: time.Minute}),
		"short step":     hour(store.Question{Topic: store.History, Service: "s", Step: 1}),
		"column":         hour(store.Question{Topic: store.Services, Sort: "service; DROP TABLE windows"}),
		"too many rows":  hour(store.Question{Topic: store.Services, Most: 1e9}),
		"before the row": hour(store.Question{Topic: store.Services, Offset: -1}),
	} {
		if _, err := s.Ask(t.Context(), q); !errors.Is(err, store.ErrQuestion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func query(t *testing.T, s store.Store) {
	add(t, s, Batches(7, 6, 12))
	table, err := s.SQL(t.Context(), "SELECT count(*) AS n, sum(length_s) AS s FROM windows; ", 10)
	if err != nil || len(table.Rows) != 1 || table.Rows[0][0] != int64(72) || table.Rows[0][1] != 720.0 || table.Columns[1].Name != "s" {
		t.Errorf("%+v, %v", table, err)
	}
	if _, err := s.SQL(t.Context(), "SELECT at FROM windows", 71); err == nil {
		t.Error("more rows than asked for are no error")
	}
	for _, bad := range []string{"", "DROP TABLE windows", "DELETE FROM windows", "INSERT INTO windows SELECT * FROM windows", "SELECT 1; DROP TABLE windows", "SELECT 1) q; DROP TABLE windows; SELECT * FROM (SELECT 1", "SELECT 1\x00", "SELECT nothing FROM nowhere", "CREATE TABLE x (y int)"} {
		if _, err := s.SQL(t.Context(), bad, 10); !errors.Is(err, store.ErrQuestion) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	again, err := s.SQL(t.Context(), "SELECT count(*) FROM windows", 10)
	if err != nil || again.Rows[0][0] != int64(72) {
		t.Errorf("after bad SQL: %v, %v", again.Rows, err)
	}
}

// exported are the columns of an export that the test looks at.
type exported struct {
	Level    string   `parquet:"level"`
	Workload []byte   `parquet:"workload"`
	Windows  int64    `parquet:"windows"`
	Length   float64  `parquet:"length_s"`
	CPU      *float64 `parquet:"cpu_cpus,optional"`
	Local    *float64 `parquet:"local_ratio,optional"`
	LocalHow string   `parquet:"local_how"`

	Traffic    *float64 `parquet:"traffic_bytes,optional"`
	TrafficHow string   `parquet:"traffic_how"`
	LatencyHow string   `parquet:"latency_how"`
}

func export(t *testing.T, s store.Store) {
	batches := Batches(8, 6, 1500)
	add(t, s, batches)
	day := 24 * time.Hour
	for i, level := range []string{"window", "minute", "hour"} {
		maintain(t, s, Start.Add(time.Duration(i)*10*day+2*day), store.Retention{Raw: 5 * day, Minutes: 15 * day, Hours: 100 * day, Events: day})
		var file bytes.Buffer
		if err := s.Export(t.Context(), &file, Start.Truncate(time.Hour), end(batches)); err != nil {
			t.Fatal(err)
		}
		rows, err := parquet.Read[exported](bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		windows, cpu, unknown := int64(0), 0.0, 0
		for _, r := range rows {
			windows += r.Windows
			cpu += *r.CPU * r.Length
			if r.Level != level {
				t.Fatalf("a row of level %s, want %s", r.Level, level)
			}
			if r.Local == nil {
				unknown++
			}
			if (r.Local == nil) != (r.LocalHow == "unknown") || (r.Traffic == nil) != (r.TrafficHow == "unknown") || r.LatencyHow != "unknown" {
				t.Errorf("how of %+v", r)
			}
		}
		want := 0.0
		for _, s := range expect(batches, Start, end(batches)) {
			want += s.cpu
		}
		if windows != 9000 || !near(cpu, want) || unknown == 0 {
			t.Errorf("%s: %d windows and %v CPU-s, want %v; %d unknown", level, windows, cpu, want, unknown)
		}
	}
}

func atOnce(t *testing.T, s store.Store) {
	batches := Batches(9, 8, 60)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j, b := range batches {
				if j%4 != i {
					continue
				}
				for {
					n, err := s.Add(t.Context(), []store.Batch{b})
					if err == nil && n == 1 {
						break
					}
					if !errors.Is(err, store.ErrBusy) {
						t.Errorf("%d, %v", n, err)
						return
					}
				}
				if _, err := s.Ask(t.Context(), store.Question{Topic: store.Services, From: Start, Until: Start.Add(time.Hour)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	compare(t, s, batches, Start, Start.Add(time.Hour))
}

// ended: what ends early keeps nothing, and may be sent again.
func ended(t *testing.T, s store.Store) {
	batches := Batches(10, 6, 12)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := s.Add(ctx, batches); n != 0 || !errors.Is(err, store.ErrBusy) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := s.Ask(ctx, store.Question{Topic: store.Services, From: Start, Until: end(batches)}); err == nil {
		t.Error("a question that ended was answered")
	}
	compare(t, s, nil, Start, end(batches))
	add(t, s, batches)
	compare(t, s, batches, Start, end(batches))
}
