// SPDX-License-Identifier: Apache-2.0

// The arrows of docs/architecture.md, held by one test.
package internal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// architecture places every package, below internal/ unless it is cmd's. A new
// package fails the test until it has its place here.
//
//	line   a level; imports point to lower lines only
//	|      between rooms of one level: siblings, which do not import each other
//	>      inside a room: from left to right only
//	space  inside a room: siblings
const architecture = `
cmd/homenode | cmd/homenode-hub | cmd/homenode-lab | cmd/homenode-loop
profiling/host | loop
views | control/host | migrate | bench/host
source
cli/clitest > cli/reference > cli
agent/serve > agent > agent/decisions agent/outbox agent/threadagent | hub/fleettest hub hub/page > hub/ca hub/deploy hub/query hub/sensitivity | lab/demo > lab | report report/topology report/profile report/simulation | tui
exit | lab/model
bench
owner/cgroup | owner/affinity | owner/systemd | owner/docker | owner/containerd | owner/resctrl
owner/ownertest > owner
journal | webhook | wire > wire/wirepb | papers > papers/lakew papers/rao papers/measured
sim/arena sim/placements sim/rollouts > sim/fleet sim/scenario sim/parity > sim/runner > sim/catalog sim/threadworld > sim > sim/linux sim/memsys > sim/detmath | kernel/kerneltest > kernel > kernel/membench kernel/launch > kernel/freeze kernel/hotness kernel/migrate > kernel/bpfcount > kernel/sampling kernel/cgroup kernel/pagecache kernel/perf kernel/record kernel/resctrl > kernel/procfs > kernel/unix | store/storetest > store/clickhouse store/sqlite > store/tables
render/words
control > actuate | replay | interference | profiling
policy/mao | policy/numad | policy/brm | policy/vmmap | doctor | packing | rollout
snapshot | render/field | model/gain > model | store
window/windowtest > window
migration | placement
action
profile
machine/shapetest > machine/machinetest machine | experiment | event | lab/shapes | render/picture > render
set | unit | schema | yamlfile | golden | dataset
`

// From this level down nothing touches the outside; above it, those that say so
// in their doc.go.
const firstPure = "actuate"

var alsoPure = []string{"bench", "sim", "sim/catalog", "papers", "papers/lakew", "papers/measured", "papers/rao", "sim/arena", "sim/placements", "sim/rollouts", "sim/runner", "sim/detmath", "sim/fleet", "sim/linux", "sim/memsys", "sim/scenario", "sim/threadworld", "render", "render/field", "render/picture", "render/words", "report", "report/topology", "report/profile", "report/simulation", "store/tables"}

// helpers are for tests: no product code imports them, and they may read files.
var helpers = []string{"cli/clitest", "kernel/kerneltest", "owner/ownertest", "machine/machinetest", "machine/shapetest", "window/windowtest", "sim/parity", "golden", "hub/fleettest", "store/storetest"}

// impure is what pure packages do not import; "net/" stands for all below it.
var impure = []string{"os", "os/", "log", "log/", "net", "net/", "math/rand", "syscall", "golang.org/x/sys/"}

// wallClock is what pure packages do not use of package time. They may hold
// times and durations, and compute with them.
var wallClock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// ownRandom is all that pure packages use of math/rand/v2: generators of their
// own, made from a seed. Everything else is global state.
var ownRandom = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "PCG", "ChaCha8", "Zipf", "Source"}

// guarded are imports that only some rooms may have. Exceptions are single
// packages, with the reason; one that is no longer needed fails the test.
var guarded = []struct {
	about      string
	imports    []string
	rooms      []string
	exceptions map[string]string
}{
	{
		about: "system calls", imports: []string{"syscall", "golang.org/x/sys/"}, rooms: []string{"kernel", "owner", "journal"},
		exceptions: map[string]string{
			"cli":              "the name of SIGTERM",
			"agent/serve":      "the name of SIGHUP",
			"cmd/homenode-lab": "the name of SIGTERM, and events that only the lab's tests open",
			"lab":              "ties QEMU's life to its own",
			"lab/demo":         "signals the programs it compares, and starts loads inside their cgroups",
			"lab/model":        "maps the model's PCI memory in the guest",
		},
	},
	{
		about: "logging", imports: []string{"log", "log/"}, rooms: []string{"cmd", "agent", "hub"},
		exceptions: map[string]string{"loop": "gives the hub's runner a log that goes nowhere"},
	},
	{about: "reading YAML", imports: []string{"go.yaml.in/yaml/", "github.com/goccy/", "gopkg.in/yaml"}, rooms: []string{"yamlfile"}},
	{
		about: "starting programs", imports: []string{"os/exec"}, rooms: []string{"lab"},
		exceptions: map[string]string{
			"machine/machinetest": "unpacks .xz archives with the xz program",
			"kernel/launch":       "starts the program that it was asked to place",
			"agent/serve":         "asks the program that replaces it to check the configuration",
			"kernel/freeze":       "starts the guard that thaws when its starter is gone",
		},
	},
}

// place is where a package stands: lower numbers are higher up.
type place struct {
	level, room, step int
}

// above says that a package here may import one there.
func (p place) above(q place) bool {
	if p.level == q.level && p.room == q.room {
		return p.step < q.step
	}
	return p.level < q.level
}

func places() map[string]place {
	all := map[string]place{}
	for level, line := range strings.Split(strings.TrimSpace(architecture), "\n") {
		for room, steps := range strings.Split(line, "|") {
			for step, names := range strings.Split(steps, ">") {
				for _, name := range strings.Fields(names) {
					all[name] = place{level, room, step}
				}
			}
		}
	}
	return all
}

// source is one file that is no test.
type source struct {
	pkg  string // as in architecture
	file *ast.File
	fset *token.FileSet
}

// verdict is what the files do wrong, and how much was looked at.
type verdict struct {
	wrong           []string
	arrows, imports int
	seen            map[string]bool // packages
	used            map[string]bool // exceptions
}

func TestArrows(t *testing.T) {
	all := places()
	files := load(t)
	v := judge(all, files)
	for _, w := range v.wrong {
		t.Error(w)
	}
	for name := range all {
		if !v.seen[name] {
			t.Errorf("%s has a place in the architecture, but no file", name)
		}
	}
	for _, g := range guarded {
		for name := range g.exceptions {
			if !v.used[g.about+" "+name] {
				t.Errorf("%s no longer needs its exception for %s", name, g.about)
			}
		}
	}
	if len(files) == 0 || v.arrows == 0 || v.imports == 0 {
		t.Errorf("nothing was compared: %d files, %d imports, %d arrows", len(files), v.imports, v.arrows)
	}
	t.Logf("%d packages, %d files, %d imports, %d of them arrows", len(v.seen), len(files), v.imports, v.arrows)
}

func judge(all map[string]place, files []source) verdict {
	v := verdict{seen: map[string]bool{}, used: map[string]bool{}}
	for _, s := range files {
		v.seen[s.pkg] = true
		if _, ok := all[s.pkg]; !ok {
			v.say(s, s.file.Package, "package %s has no place in the architecture: give it one", s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			v.imports++
			v.judgeImport(all, s, spec)
		}
		if isPure(all, s.pkg) {
			v.judgeUses(s, "time", func(name string) bool { return !slices.Contains(wallClock, name) })
			v.judgeUses(s, "math/rand/v2", func(name string) bool { return slices.Contains(ownRandom, name) })
		}
	}
	return v
}

func (v *verdict) say(s source, at token.Pos, format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf("%s: %s", s.fset.Position(at), fmt.Sprintf(format, args...)))
}

func isHelper(name string) bool { return slices.Contains(helpers, name) }

func isPure(all map[string]place, name string) bool {
	return !isHelper(name) && (all[name].level >= all[firstPure].level || slices.Contains(alsoPure, name))
}

func (v *verdict) judgeImport(all map[string]place, s source, spec *ast.ImportSpec) {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		v.say(s, spec.Pos(), "import %s cannot be read: %v", spec.Path.Value, err)
		return
	}
	if name, ours := ownName(target); ours {
		v.judgeArrow(all, s, spec, name)
		return
	}
	if isPure(all, s.pkg) && oneOf(target, impure) {
		v.say(s, spec.Pos(), "%s is pure and imports %s", s.pkg, target)
	}
	v.judgeGuards(s, spec, target)
}

func (v *verdict) judgeArrow(all map[string]place, s source, spec *ast.ImportSpec, name string) {
	v.arrows++
	switch to, ok := all[name]; {
	case !ok:
		v.say(s, spec.Pos(), "%s imports %s, which has no place in the architecture", s.pkg, name)
	case !all[s.pkg].above(to):
		v.say(s, spec.Pos(), "%s imports %s: arrows point down only, and siblings do not import each other", s.pkg, name)
	case isHelper(name) && !isHelper(s.pkg):
		v.say(s, spec.Pos(), "%s imports %s, which is for tests", s.pkg, name)
	}
}

func (v *verdict) judgeGuards(s source, spec *ast.ImportSpec, target string) {
	room, _, _ := strings.Cut(s.pkg, "/")
	for _, g := range guarded {
		if !oneOf(target, g.imports) || slices.Contains(g.rooms, room) {
			continue
		}
		if _, ok := g.exceptions[s.pkg]; ok {
			v.used[g.about+" "+s.pkg] = true
			continue
		}
		v.say(s, spec.Pos(), "%s imports %s: %s is for %s", s.pkg, target, g.about, strings.Join(g.rooms, ", "))
	}
}

// judgeUses looks at every use of a package's names, under whatever name it was
// imported.
func (v *verdict) judgeUses(s source, target string, ok func(name string) bool) {
	local := localName(s.file, target)
	if local == "." {
		v.say(s, s.file.Package, "%s imports %s with a dot: what it uses of it cannot be seen", s.pkg, target)
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		use, isSelector := n.(*ast.SelectorExpr)
		if !isSelector {
			return true
		}
		if id, isName := use.X.(*ast.Ident); isName && local != "" && id.Name == local && !ok(use.Sel.Name) {
			v.say(s, use.Pos(), "%s is pure and uses %s.%s", s.pkg, target, use.Sel.Name)
		}
		return true
	})
}

// localName is what a file calls an import; "" if it has none of it.
func localName(f *ast.File, target string) string {
	for _, spec := range f.Imports {
		if spec.Path.Value != strconv.Quote(target) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(strings.TrimSuffix(target, "/v2"))
	}
	return ""
}

// oneOf says whether target is in the list, or below an entry that ends in "/".
func oneOf(target string, list []string) bool {
	return slices.ContainsFunc(list, func(e string) bool {
		return target == e || strings.HasSuffix(e, "/") && strings.HasPrefix(target, e)
	})
}

const module = "homenode"

// ownName is a package's name in architecture.
func ownName(target string) (string, bool) {
	rest, ours := strings.CutPrefix(target, module+"/")
	return strings.TrimPrefix(rest, "internal/"), ours
}

// load parses every file that is no test, also those that other systems build.
// loaded is every file of the repository that is no test: read once for all tests.
var loaded []source

func load(t *testing.T) []source {
	t.Helper()
	if loaded == nil {
		loaded = loadAll(t)
	}
	return loaded
}

func loadAll(t *testing.T) []source {
	t.Helper()
	var files []source
	fset := token.NewFileSet()
	listed := map[string]bool{}
	for _, p := range goList(t) {
		listed[p.Dir] = true
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			pkg, _ := ownName(p.ImportPath)
			files = append(files, source{pkg, file, fset})
		}
	}
	checkNoneMissed(t, listed)
	return files
}

type listedPackage struct {
	ImportPath, Dir                   string
	GoFiles, CgoFiles, IgnoredGoFiles []string
}

func goList(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,IgnoredGoFiles", module+"/...")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("go list: %v: %s", err, exit.Stderr)
	} else if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listedPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listedPackage
		if err := d.Decode(&p); err != nil {
			t.Fatalf("read go list: %v", err)
		}
		all = append(all, p)
	}
	return all
}

// checkNoneMissed walks the folders itself. That go list saw them all is one
// reason; the other is that go test then knows that its cached result depends on
// them.
func checkNoneMissed(t *testing.T, listed map[string]bool) {
	t.Helper()
	for _, top := range []string{".", "../cmd"} {
		err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			dir, err := filepath.Abs(filepath.Dir(name))
			if strings.HasSuffix(name, ".go") && !listed[dir] {
				t.Errorf("%s has Go files that go list does not know", dir)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The test's own test: what must not be is found, and what may be is not.
func TestArrowsFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		pkg, src, want string // want "": nothing is wrong
	}{
		{"agent", `import "homenode/internal/window"`, ""},
		{"window", `import "homenode/internal/kernel"`, "arrows point down only"},
		{"action", `import "homenode/internal/window"`, "arrows point down only"},
		{"agent", `import "homenode/internal/report"`, "siblings"},
		{"lab/demo", `import "homenode/internal/lab"`, ""},
		{"lab/demo", `import "homenode/internal/agent"`, "siblings"},
		{"lab", `import "homenode/internal/lab/demo"`, "arrows point down only"},
		{"kernel/perf", `import "homenode/internal/kernel/cgroup"`, "siblings"},
		{"kernel/unix", `import "homenode/internal/kernel"`, "arrows point down only"},
		{"set", `import "homenode/internal/unit"`, "siblings"},
		{"policy/new", `import "homenode/internal/window"`, "has no place"},
		{"agent", `import "homenode/internal/new"`, "has no place"},
		{"agent", `import "homenode/internal/window/windowtest"`, "for tests"},
		{"machine", `import "os"`, "is pure and imports os"},
		{"machine", `import "io/fs"`, ""},
		{"window", `import _ "net/http"`, "is pure and imports net/http"},
		{"experiment", `import "log/slog"`, "is pure and imports log/slog"},
		{"actuate", `import "math/rand"`, "is pure and imports math/rand"},
		{"actuate", `import "math/rand/v2"; var r = rand.New(rand.NewPCG(1, 2))`, ""},
		{"control", `import "homenode/internal/agent"`, "arrows point down only"},
		{"control", `import "time"; var now = time.Now`, "uses time.Now"},
		{"actuate", `import "math/rand/v2"; var r = rand.IntN(6)`, "uses math/rand/v2.IntN"},
		{"policy/mao", `import "time"; var d = time.Second`, ""},
		{"policy/mao", `import clock "time"; var now = clock.Now`, "uses time.Now"},
		{"policy/mao", `import . "time"; var now = Now`, "with a dot"},
		{"journal", `import "time"; var now = time.Now`, ""},
		{"agent", `import "golang.org/x/sys/unix"`, "system calls is for kernel"},
		{"owner/cgroup", `import "golang.org/x/sys/unix"`, ""},
		{"lab", `import "syscall"`, ""},
		{"kernel", `import "os/exec"`, "starting programs is for lab"},
		{"journal", `import "log"`, "logging is for cmd, agent, hub"},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", "package x; "+c.src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		wrong := strings.Join(judge(places(), []source{{c.pkg, file, fset}}).wrong, "\n")
		if (wrong == "") != (c.want == "") || !strings.Contains(wrong, c.want) {
			t.Errorf("%s with %s: %q, want %q", c.pkg, c.src, wrong, c.want)
		}
	}
	for _, name := range slices.Concat(helpers, alsoPure, []string{firstPure}) {
		if !slices.Contains(slices.Collect(maps.Keys(places())), name) {
			t.Errorf("%s has no place", name)
		}
	}
}

// small are the packages below smallLines, each with the reason why it is a room of its own
// and not part of a neighbour.
var small = map[string]string{
	"cmd/homenode-loop":   "wires the demonstration of the loop, which no installed program has",
	"cli/reference":       "what it imports is for the build, and in no program that is installed",
	"exit":                "rooms below cli return exit codes, so they cannot be cli's",
	"golden":              "tests of eleven rooms use it, from the bottom up",
	"lab/shapes":          "embeds the files beside it; go:embed reaches no other folder",
	"machine/machinetest": "machine's own tests use it, so it cannot import machine",
	"machine/shapetest":   "imports machine, which machinetest cannot",
	"render/field":        "knows a window; render knows no domain type",
	"sim/detmath":         "every room of the simulator uses it, and it uses none",
	"webhook":             "hub and host tell people by it, and neither may import the other",
}

const smallLines = 200

// A package that is small is merged with its neighbour, or says why not.
func TestSmallPackages(t *testing.T) {
	lines := map[string]int{}
	for _, s := range load(t) {
		lines[s.pkg] += s.fset.Position(s.file.FileEnd).Line
	}
	for name, n := range lines {
		why, said := small[name]
		if n < smallLines && !said {
			t.Errorf("%s has %d lines: merge it with a neighbour, or say in this file why it is a room of its own", name, n)
		}
		if n >= smallLines && said {
			t.Errorf("%s has %d lines, so it no longer needs its reason: %s", name, n, why)
		}
	}
	for name := range small {
		if lines[name] == 0 {
			t.Errorf("%s has a reason, but no file", name)
		}
	}
	t.Logf("%d packages, %d of them below %d lines", len(lines), len(small), smallLines)
}
