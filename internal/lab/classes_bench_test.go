// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/interference"
	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim/catalog"
	"homenode/internal/unit"
	"homenode/internal/window"
)

type realProgram struct{ name, line string }

// realPrograms are programs in the guest that were not written for this test (busybox's),
// on data in /trial/NODE. Each line is one piece of work. They were written, with the
// lists of data, before the first run; none was removed afterwards. Two things changed
// because of the time they took: the data for all after gzip's ten model-seconds, and the
// number for factor, which took minutes.
var realPrograms = []realProgram{
	{"gzip", "gzip -c part"},
	{"gunzip", "gunzip -c text.gz"},
	{"bzip2", "bzip2 -c part"},
	{"bunzip2", "bunzip2 -c text.bz2"},
	{"lzop", "lzop -c part"},
	{"unlzop", "lzop -dc text.lzo"},
	{"sort", "sort lines"},
	{"sort-n", "sort -n numbers"},
	{"awk-count", `awk "{ for (i = 1; i <= NF; i++) n[\$i]++ } END { for (w in n) s += n[w]; print s }" part`},
	{"awk-sum", `awk "{ s += \$1 } END { print s }" numbers`},
	{"sha256sum", "sha256sum text"},
	{"crc32", "crc32 text"},
	{"grep", `grep -c "q[a-f]*z" text`},
	{"sed", "sed s/ab/ba/g part"},
	{"wc", "wc text"},
	{"diff", "diff lines sorted"},
	{"tac", "tac lines"},
	{"od", "od -x part"},
	{"factor", "factor 1000036000099"},
	{"bc", `bc -q pi.bc`},
}

// realData makes the data of a node: words (a few of them frequent), lines, numbers.
// busybox and the data are in a tmpfs of the node.
const realData = `set -eu
homenode-load control off > /dev/null
echo 0 > /proc/sys/kernel/numa_balancing
cg=/sys/fs/cgroup/trial; mkdir -p $cg; echo "+cpuset +cpu +memory" > $cg/cgroup.subtree_control; mkdir -p $cg/p $cg/n
for node in 0 1; do
	d=/trial/$node; mkdir -p $d; mount -t tmpfs -o mpol=bind:$node,size=48m trial $d; cd $d
	cp /bin/busybox busybox
	awk 'BEGIN { srand(2013); for (l = 0; l < 12000; l++) { s = ""; for (i = 0; i < 8; i++) { x = int(8000 * rand() * rand() * rand()); w = ""; do { w = w sprintf("%c", 97 + x % 26); x = int(x / 26) } while (x > 0); s = s w (i < 7 ? " " : "") } print s } }' > text
	head -n 3000 text > part
	awk 'BEGIN { srand(7); for (l = 0; l < 20000; l++) printf "%d\n", rand() * 1e9 }' > numbers
	awk 'BEGIN { srand(9); for (l = 0; l < 12000; l++) printf "%08d the line of a file\n", rand() * 1e8 }' > lines
	sort lines > sorted
	gzip -c text > text.gz; bzip2 -c text > text.bz2; lzop -c text > text.lzo
	printf 'scale=120\nr=0\nfor (i = 1; i < 160; i++) r = r + 1 / (i * i)\nr\n' > pi.bc
done
`

// classesRow is one program.
type classesRow struct {
	Program string             `json:"program"`
	Truth   catalog.Finding    `json:"truth"`
	Hurt    experiment.Summary `json:"hurt"`
	Harm    experiment.Summary `json:"harm"`
	Remote  experiment.Summary `json:"remote"`
	Alone   vmmap.Verdict      `json:"inferred_alone"`
	Beside  vmmap.Verdict      `json:"inferred_beside_the_devil"`
	Both    vmmap.Verdict      `json:"inferred_after_both"`
	Default vmmap.Verdict      `json:"inferred_alone_by_the_default_constants"`
	Bounds  []vmmap.Bounds     `json:"bounds_alone"`
	Model   []float64          `json:"alone_model_seconds"`
}

// classesFile is build/bench/classes.json.
type classesFile struct {
	Schema int          `json:"schema"`
	How    string       `json:"how"`
	Infer  vmmap.Infer  `json:"calibrated"`
	Rows   []classesRow `json:"rows"`
}

// TestBenchClasses measures slowdowns of real programs in the lab, solo and beside the
// references, and compares what animal infers from windows (scripts/bench-classes.sh):
// HOMENODE_BENCH_CLASSES names the file of results.
func TestBenchClasses(t *testing.T) {
	path, repeats := benchFile(t, "HOMENODE_BENCH_CLASSES", "make bench-classes")
	programs := benchOnly(t, realPrograms, func(p realProgram) string { return p.name })
	g := guest(t, "two", "v2")
	m := shapeNamed(t, "two").Machine()
	mustRun(t, g, "sh", "-c", realData)
	out := classesFile{Schema: 1, How: "modelled (lab, shape two)"}
	var err error
	if out.Infer, err = calibrate(t.Context(), g, m); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("calibrated: %+v\n", out.Infer)
	for _, p := range programs {
		row, err := tryProgram(t.Context(), g, p.name, p.line, out.Infer, m, repeats)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		fmt.Println(row)
		out.Rows = append(out.Rows, row)
		writeResults(t, path, out)
	}
	if len(out.Rows) == 0 {
		t.Fatal("no program could be tried")
	}
	tellClasses(out)
}

func (r classesRow) String() string {
	s := func(s vmmap.Slowdowns) string {
		return fmt.Sprintf("hurt %5.1f %% harm %5.1f %% remote %5.1f %%", 100*s.Hurt.Or(-0.01), 100*s.Harm.Or(-0.01), 100*s.Remote.Or(-0.01))
	}
	return fmt.Sprintf("%-10s %-7s sensitive %-5v %s | alone %-7s %-5v %s | beside the devil %-7s %-5v | after both %-7s %-5v %s | default constants %-7s %-5v | %.2f model-s",
		r.Program, r.Truth.Class, r.Truth.Sensitive, s(r.Truth.Slowdowns), r.Alone.Class, r.Alone.Sensitive, s(r.Alone.Slowdowns),
		r.Beside.Class, r.Beside.Sensitive, r.Both.Class, r.Both.Sensitive, s(r.Both.Slowdowns), r.Default.Class, r.Default.Sensitive, r.Model)
}

// tellClasses prints the number of cases in which the inference is right.
func tellClasses(f classesFile) {
	for _, how := range []struct {
		name string
		of   func(classesRow) vmmap.Verdict
	}{{"alone", func(r classesRow) vmmap.Verdict { return r.Alone }}, {"beside the devil", func(r classesRow) vmmap.Verdict { return r.Beside }},
		{"alone and then beside the devil", func(r classesRow) vmmap.Verdict { return r.Both }},
		{"alone, default constants", func(r classesRow) vmmap.Verdict { return r.Default }}} {
		class, unknown, sensitive := 0, 0, 0
		for _, r := range f.Rows {
			v := how.of(r)
			switch v.Class {
			case r.Truth.Class:
				class++
			case vmmap.Unknown:
				unknown++
			}
			if v.Sensitive == r.Truth.Sensitive {
				sensitive++
			}
		}
		fmt.Printf("bench-classes: %s: class right in %d of %d (unknown in %d), sensitivity in %d\n", how.name, class, len(f.Rows), unknown, sensitive)
	}
}

// The neighbours and references of vmmap.Slowdowns, on CPU 1 and memory of node 0.
const (
	noNeighbour     = ""
	devilNeighbour  = "stream --ws 2MiB --thp off --cpus 1 --bind-mem 0"
	rabbitNeighbour = "chase --ws 256KiB --thp off --cpus 1 --bind-mem 0"
)

// inGroup starts a command in a cgroup of the trial, without waiting.
func inGroup(group, command, log string) string {
	return fmt.Sprintf("sh -c 'echo $$ > /sys/fs/cgroup/trial/%s/cgroup.procs; %s' < /dev/null > /dev/null 2> %s &\n", group, command, log)
}

// tryScript runs a command alone or beside a neighbour: CPU 0 is its own, everything else
// but the neighbour is on CPU 3. It prints the neighbour's report: phase 1 is before,
// phase 2 during the work.
func tryScript(command, neighbour string, node int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `set -u
taskset -p 8 $$ > /dev/null; rm -rf /tmp/t; mkdir -p /tmp/t; cd /trial/%[1]d
cg=/sys/fs/cgroup/trial; echo 0 > $cg/p/cpuset.cpus; echo %[1]d > $cg/p/cpuset.mems; echo 1 > $cg/n/cpuset.cpus; echo 0 > $cg/n/cpuset.mems
homenode-load control on --phase 1 > /dev/null
`, node)
	if neighbour != "" {
		b.WriteString(inGroup("n", "exec homenode-load "+neighbour+" --seconds 100000 --out /tmp/t/n --ready /tmp/t/ready", "/tmp/t/err"))
		b.WriteString("n=0; until [ -e /tmp/t/ready ]; do n=$((n + 1)); [ $n -lt 600 ] || { cat /tmp/t/err >&2; exit 1; }; sleep 0.1; done\n")
		b.WriteString("sleep 0.8\n")
	}
	b.WriteString(command)
	if neighbour != "" {
		b.WriteString("kill $(cat /tmp/t/ready); n=0; until [ -e /tmp/t/n ]; do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.1; done\necho == neighbour; cat /tmp/t/n\n")
	}
	b.WriteString("homenode-load control off > /dev/null\n")
	return b.String()
}

// work is n pieces of a program's work, which run in its cgroup to their end, with the
// model's clock before and after. Entering a cgroup takes a while in the kernel, which
// does not count as work.
func work(line string, n int) string {
	loop := fmt.Sprintf("homenode-load control on --phase 2 > /tmp/t/begin; i=0; while [ $i -lt %d ]; do ./busybox %s > /dev/null; i=$((i + 1)); done; homenode-load control on --phase 3 > /tmp/t/end", n, line)
	return strings.TrimSuffix(inGroup("p", loop, "/tmp/t/p.err"), " &\n") + "\necho == begin; cat /tmp/t/begin; echo == end; cat /tmp/t/end\n"
}

// recordWindows records while a program works continuously.
func recordWindows(command string) string {
	return inGroup("p", command, "/tmp/t/p.err") + `sleep 2
timeout 100 homenode record --windows /tmp/t/w --for 20s --period 2s --penalty --workload '/trial/*' < /dev/null > /dev/null 2> /tmp/t/r.err || cat /tmp/t/r.err >&2
kill $(cat /sys/fs/cgroup/trial/p/cgroup.procs) 2> /dev/null; wait $! 2> /dev/null
echo == windows; cat /tmp/t/w
`
}

func onAndOn(line string) string {
	return "while :; do ./busybox " + line + " > /dev/null; done"
}

// tried is one run.
type tried struct {
	Cycles    float64    // of the model's clock
	Neighbour [3]float64 // its operations a cycle, by phase
	Recording window.Recording
}

func tryOnce(ctx context.Context, g *Guest, command, neighbour string, node int) (r tried, err error) {
	ctx, cancel := g.Within(ctx, 6*time.Minute)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", tryScript(command, neighbour, node))
	if err != nil || out.Exit != 0 {
		return r, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	if at, ok := in["begin"]; ok {
		var begin, end struct {
			Cycles float64 `json:"model_cycles"`
		}
		if err := errors.Join(json.Unmarshal([]byte(at), &begin), json.Unmarshal([]byte(in["end"]), &end)); err != nil || end.Cycles <= begin.Cycles {
			return r, fmt.Errorf("read the clock: %w: %.300q, %s", err, out.Stdout, out.Stderr)
		}
		r.Cycles = end.Cycles - begin.Cycles
	}
	if neighbour != "" {
		var p parityReport
		if err := json.Unmarshal([]byte(in["neighbour"]), &p); err != nil {
			return r, fmt.Errorf("read the neighbour's report: %w: %.300q", err, in["neighbour"])
		}
		for _, phase := range p.Phases {
			if phase.Phase < len(r.Neighbour) && phase.End > phase.Start {
				r.Neighbour[phase.Phase] = phase.Work / (phase.End - phase.Start)
			}
		}
	}
	if w, ok := in["windows"]; ok {
		r.Recording, err = window.ReadRecording(strings.NewReader(w))
	}
	return r, err
}

// calibrate records the references.
func calibrate(ctx context.Context, g *Guest, m machine.Machine) (vmmap.Infer, error) {
	var r vmmap.References
	for _, c := range []struct {
		name, load, neighbour string
		node                  int
		into                  *vmmap.Sample
	}{
		{"rabbit", "chase --ws 256KiB", noNeighbour, 0, &r.Rabbit},
		{"devil", "stream --ws 2MiB", noNeighbour, 0, &r.Devil},
		{"memory", "chase --ws 4MiB", noNeighbour, 0, &r.Memory},
		{"far", "chase --ws 4MiB", noNeighbour, 1, &r.Far},
		{"crowded", "chase --ws 4MiB", devilNeighbour, 0, &r.Crowded},
	} {
		load := fmt.Sprintf("exec homenode-load %s --thp off --cpus 0 --bind-mem %d --seconds 100000", c.load, c.node)
		got, err := tryOnce(ctx, g, recordWindows(load), c.neighbour, c.node)
		if err != nil {
			return vmmap.Infer{}, fmt.Errorf("%s: %w", c.name, err)
		}
		rec := asModelled(got.Recording, m)
		if err := keepRecording("reference-"+c.name, rec); err != nil {
			return vmmap.Infer{}, err
		}
		study := interference.New(m, vmmap.DefaultConfig().Infer)
		for _, w := range rec.Windows {
			if err := study.Window(w); err != nil {
				return vmmap.Infer{}, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if *c.into, err = study.Sample("/trial/p"); err != nil {
			return vmmap.Infer{}, fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("reference %-8s %v\n", c.name, *c.into)
	}
	return vmmap.DefaultConfig().Infer.Calibrated(r)
}

// tryProgram measures how long the program takes alone, next to the devil, and with
// its memory on the other node, each relative to the run alone in the same repeat. It
// also measures the program's effect on the rabbit, and records the windows.
func tryProgram(ctx context.Context, g *Guest, name, line string, infer vmmap.Infer, m machine.Machine, repeats int) (row classesRow, err error) {
	row = classesRow{Program: name}
	once, err := tryOnce(ctx, g, work(line, 1), noNeighbour, 0)
	if err != nil {
		return row, err
	}
	n := 1 + int(5e7/once.Cycles) // a model-second or more
	var hurt, harm, remote []float64
	for range repeats {
		var alone, devil, rabbit, far tried
		for _, c := range []struct {
			neighbour string
			node      int
			into      *tried
		}{{noNeighbour, 0, &alone}, {devilNeighbour, 0, &devil}, {noNeighbour, 1, &far}, {rabbitNeighbour, 0, &rabbit}} {
			if *c.into, err = tryOnce(ctx, g, work(line, n), c.neighbour, c.node); err != nil {
				return row, err
			}
		}
		row.Model = append(row.Model, alone.Cycles/5e7)
		hurt = append(hurt, devil.Cycles/alone.Cycles-1)
		remote = append(remote, far.Cycles/alone.Cycles-1)
		harm = append(harm, rabbit.Neighbour[1]/rabbit.Neighbour[2]-1)
	}
	row.Hurt, _ = experiment.Summarise(hurt)
	row.Harm, _ = experiment.Summarise(harm)
	row.Remote, _ = experiment.Summarise(remote)
	row.Truth = catalog.Finding{App: name, Machine: "lab, shape two", How: unit.HowModelled, From: "scripts/bench-classes.sh", Threads: 1, Distance: m.Distance(0, 1), Slowdowns: vmmap.Slowdowns{
		Hurt: unit.Some(row.Hurt.Median), Harm: unit.Some(row.Harm.Median), Remote: unit.Some(row.Remote.Median),
	}}.Judge()
	alone, err := tryOnce(ctx, g, recordWindows(onAndOn(line)), noNeighbour, 0)
	if err != nil {
		return row, err
	}
	beside, err := tryOnce(ctx, g, recordWindows(onAndOn(line)), devilNeighbour, 0)
	if err != nil {
		return row, err
	}
	for what, r := range map[string]window.Recording{"alone": alone.Recording, "beside": beside.Recording} {
		if err := keepRecording(name+"-"+what, asModelled(r, m)); err != nil {
			return row, err
		}
	}
	windows := [2][]window.Window{alone.Recording.Windows, beside.Recording.Windows}
	var errs [4]error
	row.Alone, row.Bounds, errs[0] = inferred(m, infer, windows[0])
	row.Beside, _, errs[1] = inferred(m, infer, windows[1])
	row.Both, _, errs[2] = inferred(m, infer, windows[0], windows[1])
	row.Default, _, errs[3] = inferred(m, vmmap.DefaultConfig().Infer, windows[0])
	return row, errors.Join(errs[:]...)
}

// keepRecording leaves windows beside the results, for inspection.
func keepRecording(name string, rec window.Recording) error {
	dir := os.Getenv("HOMENODE_BENCH_CLASSES") + ".windows"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, name+".jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := window.NewRecorder(f, rec.Machine, rec.Period)
	for i := range rec.Windows {
		if err == nil {
			err = to.Add(rec.Windows[i])
		}
	}
	return err
}

// asModelled has the shape's caches: QEMU's CPUs report other caches, one of each per
// CPU, which are not modelled.
func asModelled(rec window.Recording, m machine.Machine) window.Recording {
	rec.Machine = m
	return rec
}

// inferred is animal's class for /trial/p after these windows.
func inferred(m machine.Machine, infer vmmap.Infer, windows ...[]window.Window) (vmmap.Verdict, []vmmap.Bounds, error) {
	study := interference.New(m, infer)
	for _, w := range slices.Concat(windows...) {
		if err := study.Window(w); err != nil {
			return vmmap.Verdict{}, nil, err
		}
	}
	look, ok := study.Look("/trial/p")
	if !ok {
		return vmmap.Verdict{}, nil, errors.New("no window has /trial/p")
	}
	return look.Says, look.Bounds, nil
}
