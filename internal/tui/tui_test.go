// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"homenode/internal/action"
	"homenode/internal/golden"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// screenOf is a replay at its n-th window.
func screenOf(t testing.TB, rec window.Recording, w, h, n int) *Model {
	t.Helper()
	m := New(context.Background(), Options{Source: NewReplay(rec), Title: "fake-four.jsonl", NoActor: "a recording cannot be bound"})
	m.w, m.h, m.playing = w, h, false
	m.time.seek(n)
	m.follow()
	return m
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".golden"), got+"\n")
}

// press sends keys as bubbletea does, and runs the commands that follow, except
// ticks.
func press(t testing.TB, m *Model, keys ...string) {
	t.Helper()
	for _, k := range keys {
		var msg tea.KeyPressMsg
		switch k {
		case "enter":
			msg.Code = tea.KeyEnter
		case "esc":
			msg.Code = tea.KeyEscape
		case "left":
			msg.Code = tea.KeyLeft
		case "right":
			msg.Code = tea.KeyRight
		case "home":
			msg.Code = tea.KeyHome
		case "end":
			msg.Code = tea.KeyEnd
		case "down":
			msg.Code = tea.KeyDown
		case "backspace":
			msg.Code = tea.KeyBackspace
		case "space":
			msg.Code, msg.Text = tea.KeySpace, " "
		default:
			msg.Code, msg.Text = []rune(k)[0], k
		}
		_, cmd := m.Update(msg)
		if cmd != nil && k != "space" && k != "f" {
			if out := cmd(); out != nil {
				m.Update(out)
			}
		}
	}
}

func TestGoldenFrames(t *testing.T) {
	rec := four(t)
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {50, 12}} {
		m := screenOf(t, rec, size[0], size[1], 40)
		checkGolden(t, fmt.Sprintf("four-%dx%d", size[0], size[1]), m.Text())
	}
	checkGolden(t, "four-first", screenOf(t, rec, 80, 24, 0).Text())
	m := screenOf(t, rec, 80, 24, 59)
	m.o.ASCII = true
	checkGolden(t, "four-ascii", m.Text())
}

func TestGoldenPages(t *testing.T) {
	rec := four(t)
	for name, keys := range map[string][]string{
		"detail": {"down", "enter"}, "help": {"?"}, "info": {"i"}, "why": {"w"}, "filter": {"/", "w", "e", "b", "enter"},
	} {
		m := screenOf(t, rec, 80, 40, 28)
		m.o.Why = func(id string) string { return id + ": bound\n    because of a test\x1b[2J" }
		press(t, m, keys...)
		checkGolden(t, "page-"+name, m.Text())
	}
}

// manyNodes are n nodes with sparse ids, the last one without CPUs.
func manyNodes(t testing.TB, n int) window.Recording {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i + i/4)
	}
	list := strings.Join(ids, ",")
	if n == 1 {
		list = "1"
	}
	rec := play(t, fmt.Sprintf("machine nodes=%s cpus=16 mem=64GiB\nworkload /a/one cpu=3 anon=2GiB local=1000000000 remote=50000000\nworkload /a/two cpu=0.5 anon=100MiB\nnode %s mem=128GiB",
		list, ids[n-1]), 3, nil)
	if n > 1 {
		for i := range rec.Windows {
			rec.Windows[i].Nodes[n-1].CPUs = set.CPUSet{}
		}
	}
	return rec
}

func TestGoldenOneAndSixteenNodes(t *testing.T) {
	checkGolden(t, "nodes-1", screenOf(t, manyNodes(t, 1), 80, 24, 2).Text())
	checkGolden(t, "nodes-2", screenOf(t, manyNodes(t, 2), 100, 24, 2).Text())
	checkGolden(t, "nodes-16-small", screenOf(t, manyNodes(t, 16), 80, 24, 2).Text())
	checkGolden(t, "nodes-16-large", screenOf(t, manyNodes(t, 16), 200, 60, 2).Text())
}

// Whatever the size, the screen and the keys, nothing is drawn outside the
// terminal.
func TestFitsEverySize(t *testing.T) {
	recs := []window.Recording{four(t), manyNodes(t, 1), manyNodes(t, 16), strange()}
	keys := []string{"enter", "esc", "?", "i", "w", "b", "0", "u", "y", "/", "x", "down", "c", "l", "p", "n", "m", "r", "t", "left", "right", "home", "end", "f"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w, h := 20+rnd.IntN(231), 5+rnd.IntN(76)
		rec := recs[rnd.IntN(len(recs))]
		m := screenOf(t, rec, w, h, rnd.IntN(len(rec.Windows)))
		m.o.Colour = rnd.IntN(2) == 0
		m.o.Actor = &fakeActor{lines: []string{"/a cpuset.cpus = 0-3", strings.Repeat("long ", 60)}}
		m.o.Why = func(string) string { return strings.Repeat("why not ", 80) }
		for range rnd.IntN(6) {
			press(t, m, keys[rnd.IntN(len(keys))])
		}
		checkFits(t, m.Text(), w, h)
	}
}

func checkFits(t testing.TB, screen string, w, h int) {
	t.Helper()
	lines := strings.Split(screen, "\n")
	if len(lines) > h {
		t.Fatalf("%d×%d: %d lines", w, h, len(lines))
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > w {
			t.Fatalf("%d×%d: line %d is %d wide: %q", w, h, i, n, l)
		}
		for _, r := range ansi.Strip(l) {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("a control character on the screen: %q", l)
			}
		}
	}
}

// strange is a window in which everything is unknown, with names that would
// control the terminal.
func strange() window.Recording {
	w := window.Window{Schema: 1, Nodes: []window.Node{{ID: 0}, {ID: 900, CPUs: set.FromCPUs(7)}}, Workloads: []window.Workload{
		{ID: "/a\x1b[2J\x1b]0;x\a"}, {ID: "/b\u202egnp.exe\n\n"}, {ID: "/" + strings.Repeat("漢字", 200)}, {ID: "/e\u0301\u200d\xff", Service: "\x9b31m"},
	}, Problems: []string{"read \x1b[31m: no\nsuch"}, Outcomes: []action.Outcome{{Status: action.Refused, Detail: "\x07"}}}
	return window.Recording{Windows: []window.Window{w, w}}
}

func FuzzText(f *testing.F) {
	f.Add("/a\x1b[2J", "svc\u202e", 80, 24, uint8(3))
	f.Add("/漢字", "", 20, 5, uint8(9))
	f.Fuzz(func(t *testing.T, id, service string, w, h int, node uint8) {
		if w < 1 || w > 300 || h < 1 || h > 100 {
			return
		}
		v := func(f float64) unit.Value[float64] { return unit.Measured(f, id) }
		win := window.Window{Schema: 1, Length: time.Second, Nodes: []window.Node{{ID: int(node), CPUs: set.FromCPUs(1), CPUBusy: v(1e300)}},
			Workloads: []window.Workload{{ID: id, Service: service, CPU: v(float64(node)), CPUByNode: []unit.Value[float64]{v(1)}}}, Problems: []string{service}}
		rec := window.Recording{Windows: []window.Window{win}, Machine: machine.Machine{Doubts: []string{id}}}
		for _, key := range []string{"t", "enter", "w", "i", "?"} {
			m := screenOf(t, rec, w, h, 0)
			m.o.Title = service
			press(t, m, key)
			checkFits(t, m.Text(), w, h)
		}
	})
}

func ids(m *Model) string {
	var all []string
	for _, r := range m.rows() {
		all = append(all, r.wl.ID[strings.LastIndexByte(r.wl.ID, '/')+1:])
	}
	return strings.Join(all, " ")
}

func TestSortFilterAndSelection(t *testing.T) {
	m := screenOf(t, four(t), 120, 40, 5)
	const least = "journald.service" // all its figures are unknown: always last
	for _, c := range []struct{ keys, first string }{
		{"c", "sshd.service"}, // it is sorted by CPU already: reversed
		{"c", "etl-nightly"}, {"l", "redis-a"}, {"r", "search"}, {"p", "etl-nightly"}, {"m", "redis-a"}, {"n", "etl-nightly"},
	} {
		press(t, m, c.keys)
		got := ids(m)
		last := strings.HasSuffix(got, least) || c.keys == "n" || c.keys == "m" // sshd's MSR is also unknown
		if !strings.HasPrefix(got, c.first+" ") || !last {
			t.Errorf("after %s: %s; want %s first and %s last", c.keys, got, c.first, least)
		}
	}
	press(t, m, "/", "W", "e", "b")
	if got := ids(m); got != "web-a web-b" {
		t.Errorf("filtered: %s", got)
	}
	press(t, m, "enter", "down")
	if m.selected != "/demo/web-b" {
		t.Errorf("selected %s", m.selected)
	}
	press(t, m, "esc", "r") // the selection stays on its workload
	if m.selected != "/demo/web-b" || !strings.Contains(m.Text(), "▸ /demo/web-b") {
		t.Errorf("selected %s", m.selected)
	}
	press(t, m, "/", "q", "q")
	if got := m.Text(); !strings.Contains(got, `none of 8 workloads has "qq"`) {
		t.Errorf("nothing found:\n%s", got)
	}
}

// A live screen follows the newest frame. A frozen one stays, and still
// collects frames.
func TestFreeze(t *testing.T) {
	rec := four(t)
	m := New(context.Background(), Options{Source: silent{}})
	feed := func(i int) { m.Update(frameMsg{frame: Frame{rec.Machine, rec.Windows[i]}}) }
	if !strings.Contains(m.Text(), "reading…") {
		t.Error("no frame yet, and no message about it")
	}
	feed(0)
	feed(1)
	press(t, m, "f")
	feed(2)
	feed(3)
	if f, _ := m.time.frame(); f.Window.Seq != 2 || !strings.Contains(m.Text(), "FROZEN, 2 newer") {
		t.Errorf("frozen at %d:\n%s", f.Window.Seq, m.Text())
	}
	press(t, m, "left", "left", "left")
	if f, _ := m.time.frame(); f.Window.Seq != 1 {
		t.Errorf("stepped back to %d", f.Window.Seq)
	}
	press(t, m, "f")
	if f, _ := m.time.frame(); f.Window.Seq != 4 {
		t.Errorf("after it continued: at %d", f.Window.Seq)
	}
	press(t, m, "home", "end")
	feed(4)
	if f, _ := m.time.frame(); f.Window.Seq != 5 || !m.playing {
		t.Errorf("end does not follow: at %d", f.Window.Seq)
	}
	m.Update(frameMsg{err: errors.New("read /proc/stat: \x1b[1mgone")})
	if got := m.Text(); !strings.Contains(got, "read /proc/stat: �[1mgone") {
		t.Errorf("the error is not shown:\n%s", got)
	}
}

type silent struct{}

func (silent) Next(ctx context.Context) (Frame, error) { <-ctx.Done(); return Frame{}, ctx.Err() }

func TestTimelineForgets(t *testing.T) {
	var line timeline
	for i := range 2 * keptFrames {
		line.addFrame(Frame{Window: window.Window{Seq: uint64(i)}}, true)
	}
	if f, _ := line.frame(); len(line.frames) != keptFrames || f.Window.Seq != 2*keptFrames-1 {
		t.Errorf("%d frames kept, at %d", len(line.frames), f.Window.Seq)
	}
	line.seek(0) // frozen at the oldest: kept longer, but not for ever
	for range 5 * keptFrames {
		line.addFrame(Frame{}, false)
	}
	if line.now != 0 || len(line.frames) != 2*keptFrames {
		t.Errorf("frozen: %d frames kept, at %d", len(line.frames), line.now)
	}
}

// A tape plays at its speed, holds, steps, and ends.
func TestReplayKeys(t *testing.T) {
	m := New(context.Background(), Options{Source: NewReplay(four(t)), Speed: 4})
	if m.Init() == nil || !strings.Contains(m.Text(), "▸ ×4") {
		t.Errorf("it does not play:\n%s", m.Text())
	}
	m.Update(tickMsg{m.turn})
	m.Update(tickMsg{m.turn - 1}) // an old tick has no effect
	if m.time.now != 1 {
		t.Errorf("at %d after one tick", m.time.now)
	}
	press(t, m, "space")
	m.Update(tickMsg{m.turn - 1})
	if m.time.now != 1 || !strings.Contains(m.Text(), "held 2 of 60") {
		t.Errorf("held at %d:\n%s", m.time.now, m.Text())
	}
	press(t, m, "right", "right", "left", "end")
	if m.time.now != 59 || m.playing {
		t.Errorf("end: at %d", m.time.now)
	}
	press(t, m, "space") // from the start again
	if m.time.now != 0 || !m.playing {
		t.Errorf("again: at %d, playing %v", m.time.now, m.playing)
	}
	press(t, m, "b")
	if m.o.NoActor = "a recording cannot be bound"; m.ask != noPrompt {
		t.Error("a recording asks for nodes")
	}
	press(t, m, "b")
	if !strings.Contains(m.Text(), "a recording cannot be bound") {
		t.Errorf("no word:\n%s", m.Text())
	}
}

type fakeActor struct {
	lines   []string
	refuse  error
	applied []action.Action
}

func (f *fakeActor) Plan(_ context.Context, a action.Action) ([]string, error) {
	return f.lines, f.refuse
}

func (f *fakeActor) Apply(_ context.Context, a action.Action) error {
	f.applied = append(f.applied, a)
	return f.refuse
}

// Nothing is applied before its dry run is shown and y is pressed.
func TestBindAsksFirst(t *testing.T) {
	m := screenOf(t, four(t), 120, 40, 5)
	actor := &fakeActor{lines: []string{"/batch/etl-nightly cpuset.cpus = 8-15", "then moves 12 GiB"}}
	m.o.Actor = actor
	press(t, m, "b", "9", "enter")
	if !strings.Contains(m.Text(), "this machine has no node 9: its nodes are 0-3") {
		t.Errorf("no such node:\n%s", m.Text())
	}
	press(t, m, "b", "x", "enter")
	if !strings.Contains(m.said, "not a list of nodes") {
		t.Errorf("said %q", m.said)
	}
	press(t, m, "b", "1", "5", "backspace", "enter")
	checkGolden(t, "plan-bind", m.Text())
	press(t, m, "x", "esc", "y")
	if len(actor.applied) > 0 || m.on != onTable {
		t.Fatalf("applied %v on screen %d", actor.applied, m.on)
	}
	press(t, m, "b", "1", "enter", "y")
	if len(actor.applied) != 1 || actor.applied[0].String() != "bind /batch/etl-nightly to nodes 1" {
		t.Fatalf("applied %v", actor.applied)
	}
	if !strings.Contains(m.said, "asked for") {
		t.Errorf("said %q", m.said)
	}
	press(t, m, "u", "y", "y")
	if len(actor.applied) != 2 || actor.applied[1].Kind != action.Unbind {
		t.Errorf("applied %v", actor.applied)
	}
	actor.refuse = errors.New("owned by systemd, which would overwrite it")
	press(t, m, "enter", "b", "0", "enter", "y")
	if len(actor.applied) != 2 || !strings.Contains(m.Text(), "owned by systemd") {
		t.Errorf("refused: applied %d, screen:\n%s", len(actor.applied), m.Text())
	}
	press(t, m, "esc")
	if m.on != onDetail {
		t.Error("esc does not lead back to the previous screen")
	}
}

// A bind applies only to the workload that it was asked for. If that workload
// ends while the nodes are typed, the selection moves to another one.
func TestBindOfOneThatIsGone(t *testing.T) {
	m := screenOf(t, four(t), 120, 40, 5)
	actor := &fakeActor{lines: []string{"would be set"}}
	m.o.Actor = actor
	asked := m.selected
	press(t, m, "b", "1")
	f := &m.time.frames[m.time.now]
	f.Window.Workloads = slices.DeleteFunc(slices.Clone(f.Window.Workloads), func(wl window.Workload) bool { return wl.ID == asked })
	m.follow()
	if m.selected == asked || !strings.Contains(m.Text(), "bind "+asked+" to nodes") {
		t.Fatalf("selected %s; screen:\n%s", m.selected, m.Text())
	}
	press(t, m, "enter")
	if said := asked + " is gone: nothing was done"; m.said != said || m.on != onTable {
		t.Errorf("said %q on screen %d", m.said, m.on)
	}
}

func TestQuit(t *testing.T) {
	m := screenOf(t, four(t), 80, 24, 0)
	press(t, m, "/")
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd != nil || m.input != "q" {
		t.Error("q in a prompt quits instead of being typed")
	}
	press(t, m, "esc")
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil {
		t.Error("q does not quit")
	}
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}); cmd == nil {
		t.Error("ctrl+c does not quit")
	}
}

func TestTraffic(t *testing.T) {
	rec := four(t)
	w := rec.Windows[5]
	local, remote := 0.0, 0.0
	for _, wl := range w.Workloads {
		local += float64(wl.LocalLoads.Or(0))
		remote += float64(wl.RemoteLoads.Or(0))
	}
	gotRate, gotLocal := 0.0, 0.0
	for _, tr := range trafficOf(w) {
		gotRate += tr.rate.Or(0)
		gotLocal += tr.rate.Or(0) * tr.local.Or(0)
	}
	seconds := w.Length.Seconds()
	if want := (local + remote) * 64 / seconds; gotRate < want*0.999 || gotRate > want*1.001 {
		t.Errorf("reads %g, want %g: every read is somewhere", gotRate, want)
	}
	if want := local * 64 / seconds; gotLocal < want*0.999 || gotLocal > want*1.001 {
		t.Errorf("local reads %g, want %g", gotLocal, want)
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		by    []float64
		width int
		want  string
	}{
		{[]float64{1, 1}, 5, "[3 2]"}, {[]float64{0, 3, 0}, 4, "[0 4 0]"}, {[]float64{0, 0}, 4, "[0 0]"}, {nil, 4, "[]"},
		{[]float64{0.99, 0.01}, 10, "[10 0]"}, {[]float64{1, 2, 3}, 6, "[1 2 3]"},
	} {
		if got := fmt.Sprint(parts(c.by, c.width)); got != c.want {
			t.Errorf("parts(%v, %d) = %s, want %s", c.by, c.width, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	if spark([]unit.Opt[float64]{{}, unit.Some(0.0), unit.Some(0.5), unit.Some(1.0)}, 1) != " ▁▅█" {
		t.Error("spark")
	}
	if nodeGlyph(11) != 'b' || nodeGlyph(99) != '*' {
		t.Error("nodeGlyph")
	}
}
