// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// small is a scenario that each entry of the tables below changes in one place.
const small = `schema: 1
name: small
machine:
  builtin: dual-skylake
period: 10s
lasts: 2m
seeds: [1, 2]
arms:
  - policy: none
  - policy: mao-b
workloads:
  - name: web
    threads: 4
    approved: true
    memory: {private: 1GiB, shared: 1GiB}
    work:
      cycles: 100000
      instructions: 100000
      regions:
        - {size: 64MiB, accesses: 100}
    demand: {rate: 1000}
`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(small), "small.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := s.Workloads[0]
	if s.Step != time.Second || s.Against != "none" || len(s.Arms) != 2 || s.Arms[1].Name != "mao-b" || !s.Linux.LoadBalance ||
		w.Replicas != 1 || w.Memory.PrivateAccesses != nil || w.Demand.Wakes != -1 || w.Work.Regions[0].Parallelism != 1 || w.Work.Regions[0].Size != 64*unit.MiB {
		t.Errorf("%+v", s)
	}
	if s.MAO.Validate() != nil || s.Actuate.Validate() != nil {
		t.Error("the defaults cannot be")
	}
}

// An arm's mao is applied over the scenario's, wherever in the file that is.
func TestArmsOwnMAO(t *testing.T) {
	text := strings.Replace(small, "- policy: mao-b", "- {policy: mao-b, mao: {max_nodes: 1}}\n  - {policy: mao-a, name: A, numa_balancing: true}", 1) + "mao: {target: 0.8}\n"
	s, err := Parse([]byte(text), "x")
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Arms[1].MAO; c == nil || c.MaxNodes != 1 || c.Target != 0.8 || s.Arms[2].MAO != nil || s.MAO.MaxNodes != 0 || s.MAO.Target != 0.8 {
		t.Errorf("%+v, %+v", s.Arms, s.MAO)
	}
	if b := s.Arms[2].NUMABalancing; b == nil || !*b || s.Arms[2].Name != "A" {
		t.Errorf("%+v", s.Arms[2])
	}
}

// A claim's figure may be missing, also as null, and 0 is a figure; every metric of a run
// may be claimed.
func TestParseClaims(t *testing.T) {
	text := small + "paper:\n"
	for _, rest := range []string{"metric: p99", "metric: p99, value: null", "metric: p99, value: 0", "metric: local_ratio, value: 0.5776", "metric: p99, against: mao-b, value: -0.121"} {
		text += "  - {figure: f, arm: none, " + rest + "}\n"
	}
	for _, m := range Metrics() {
		text += "  - {figure: all, arm: none, metric: " + m.Name + "}\n"
	}
	s, err := Parse([]byte(text), "x")
	if err != nil || len(s.Paper) != 5+len(Metrics()) {
		t.Fatal(err, len(s.Paper))
	}
	for i, want := range []unit.Opt[float64]{{}, {}, unit.Some(0.0), unit.Some(0.5776), unit.Some(-0.121)} {
		if c := s.Paper[i]; c.Value != want || c.Figure != "f" || c.Arm != "none" || c.Absolute() != (i < 4) {
			t.Errorf("%d: %+v, want %v", i, c, want)
		}
	}
}

// Every refusal names the file, the line, and the reason.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, old, new, line, why string }{
		{"unknown key", "lasts: 2m", "lasts: 2m\nlast: 3m", "line 7", `unknown field "last"`},
		{"unknown key inside", "threads: 4", "threads: 4\n    thread: 4", "line 14", `unknown field "thread"`},
		{"unknown key in memory", "private: 1GiB", "privat: 1GiB", "line 15", `unknown field "privat"`},
		{"unknown key of an arm", "policy: mao-b", "policy: mao-b\n    color: red", "line 11", `unknown field "color"`},
		{"unknown key of an arm's mao", "policy: mao-b", "policy: mao-b\n    mao: {speed: 1}", "line 11", `unknown field "speed"`},
		{"repeated key", "lasts: 2m", "lasts: 2m\nlasts: 2m", "line 7", "already defined"},
		{"wrong type", "threads: 4", "threads: many", "line 13", `threads: it is "many": want a whole number`},
		{"wrong size", "private: 1GiB", "private: 1G", "line 15", "unknown unit"},
		{"negative size", "private: 1GiB", "private: -1GiB", "line 15", `"-1GiB"`},
		{"wrong duration", "lasts: 2m", "lasts: 2 minutes", "line 6", "duration"},
		{"wrong nodes", "    demand", "    start: {bind: 0-}\n    demand", "line 21", "0-"},
		{"negative rate", "rate: 1000", "rate: -5", "line 21", "workloads[0].demand.rate: -5"},
		{"rate that is none", "rate: 1000", "rate: .nan", "line 21", "workloads[0].demand.rate"},
		{"no machine", "machine:\n  builtin: dual-skylake", "about: x", "", "machine: there is none"},
		{"empty machine", "  builtin: dual-skylake", "  profile: p.json", "line 4", "give shape, tree or builtin"},
		{"two machines", "builtin: dual-skylake", "builtin: dual-skylake\n  tree: x", "line 4", "give one of them"},
		{"unknown machine", "dual-skylake", "cray-1", "line 4", `there is no "cray-1"`},
		{"unknown policy", "mao-b", "magic", "line 10", `there is no "magic"`},
		{"two arms of a name", "mao-b", "none", "line 10", "there twice"},
		{"no arm to compare with", "lasts: 2m", "lasts: 2m\nagainst: hand", "line 7", `no arm "hand"`},
		{"seeds twice", "[1, 2]", "[1, 1]", "line 7", "twice"},
		{"negative seed", "[1, 2]", "[-1]", "line 7", ""},
		{"no seeds", "[1, 2]", "[]", "line 7", "there are 0"},
		{"period too long", "period: 10s", "period: 2h", "line 5", "period"},
		{"warm-up too long", "lasts: 2m", "lasts: 2m\nwarmup: 2m", "line 7", "warmup"},
		{"negative warm-up", "lasts: 2m", "lasts: 2m\nwarmup: -1m", "line 7", "warmup"},
		{"no name", "name: small", "name: ''", "line 2", "it is empty"},
		{"name with a path", "name: small", "name: ../x", "line 2", "letters"},
		{"newer", "schema: 1", "schema: 9", "line 1", "reads up to 1"},
		{"mao", "lasts: 2m", "lasts: 2m\nmao: {target: 2}", "line 7", "mao: target is 2"},
		{"actuate", "lasts: 2m", "lasts: 2m\nactuate: {pay_ratio: -1}", "line 7", "actuate: pay_ratio"},
		{"arm's mao", "policy: mao-b", "policy: mao-b\n    mao: {target: 2}", "line 11", "target is 2"},
		{"linux", "lasts: 2m", "lasts: 2m\nlinux: {busy: 2}", "line 7", "linux.busy"},
		{"two workloads of a name", "workloads:", "workloads:\n  - {name: web, threads: 1, memory: {private: 1GiB}, work: {cycles: 1}}", "line 13", "web"},
		{"claim without a metric", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, against: mao-b, metric: joy, value: 1}", "line 8", `there is no "joy"`},
		{"claim of an unknown arm", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: x, against: mao-b, metric: p99, value: 1}", "line 8", `no arm "x"`},
		{"claim against an unknown arm", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, against: x, metric: p99}", "line 8", `no arm "x"`},
		{"claim against itself", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, against: none, metric: p99}", "line 8", "the arm itself"},
		{"claim of no service", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, service: ads, metric: p99}", "line 8", `no service "ads"`},
		{"claim of a run, of a service", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, service: web, metric: binds}", "line 8", "leave service out"},
		{"claim of no number", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, metric: p99}\n  - {figure: f, arm: none, metric: p99, value: .nan}", "line 9", "paper[1].value"},
		{"claim of much", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, metric: p99, value: .inf}", "line 8", "paper[0].value"},
		{"claim of a word", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, metric: p99, value: much}", "line 8", `paper[0].value: it is "much": want a number`},
		{"change of no arm", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, metric: p99, value: -0.1}", "line 8", "name the arm it is against"},
		{"share in per cent", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, metric: local_ratio, value: 57.8}", "line 8", "want 0 to 1"},
		{"unknown key of a claim", "lasts: 2m", "lasts: 2m\npaper:\n  - {figure: f, arm: none, metric: p99, values: 1}", "line 8", `unknown field "values"`},
		{"seed with a fraction", "[1, 2]", "[1, 1.5]", "line 7", "seeds[1]: it is 1.5: want a whole number, 0 to 18446744073709551615"},
		{"seed in quotes", "[1, 2]", "['1']", "line 7", `seeds[0]: it is "1": want a whole number`},
		{"seed that is too large", "[1, 2]", "[99999999999999999999]", "line 7", "want a whole number"},
		{"threads with a fraction", "threads: 4", "threads: 4.7", "line 13", "workloads[0].threads: it is 4.7: want a whole number"},
		{"threads in quotes", "threads: 4", `threads: "4"`, "line 13", `workloads[0].threads: it is "4": want a whole number`},
		{"threads behind an alias", "threads: 4", "replicas: &n 1.5\n    threads: *n", "line 13", "workloads[0].replicas: it is 1.5"},
		{"threads with a tag", "threads: 4", `threads: !!int "4"`, "line 13", "want a whole number"},
		{"schema with a fraction", "schema: 1", "schema: 1.0", "line 1", "schema: it is 1.0: want a whole number"},
		{"an arm's count with a fraction", "policy: mao-b", "policy: mao-b\n    mao: {max_nodes: 1.5}", "line 11", "arms[1].mao.max_nodes: it is 1.5"},
		{"a node with a fraction", "lasts: 2m", "lasts: 2m\nmao: {node_bandwidth: {1.5: 1GiB}}", "line 7", "mao.node_bandwidth: it is 1.5"},
		{"actuate's count with a fraction", "lasts: 2m", "lasts: 2m\nactuate: {retry_limit: 2.5}", "line 7", "actuate.retry_limit: it is 2.5"},
		{"rate beyond a float", "rate: 1000", "rate: 1e309", "line 21", "workloads[0].demand.rate: it is 1e309: want a number, at most 1e+18"},
		{"large rate", "rate: 1000", "rate: 1.0e300", "line 21", "it is 1.0e300: want a number, at most 1e+18"},
		{"endless rate", "rate: 1000", "rate: .inf", "line 21", "it is .inf: want a number, at most 1e+18"},
		{"rate in quotes", "rate: 1000", "rate: '1000'", "line 21", `it is "1000": want a number`},
		{"duration without a unit", "lasts: 2m", "lasts: 120", "line 6", "lasts: it is 120: want a duration"},
		{"merge key", "policy: mao-b", "&a {policy: mao-b}\n  - <<: *a\n    name: c", "line 11", "merge keys"},
		{"alias of nothing", "threads: 4", "threads: *n", "line 13", "unknown anchor 'n'"},
		{"alias of itself", "seeds: [1, 2]", "seeds: &s [*s]", "line 7", "alias *s is inside the value that it stands for"},
		{"anchor twice", "threads: 4", "threads: &n 4\n    replicas: &n 1", "line 14", "&n is there twice"},
		{"balancing that is off", "policy: none", "policy: numa-balancing\n    numa_balancing: false", "line 10", "arms[0].numa_balancing: it is false, but"},
		{"mao's settings without mao", "policy: none", "policy: none\n    mao: {target: 0.5}", "line 10", "arms[0].mao: its policy is none"},
		{"another strategy", "policy: mao-b", "policy: mao-b\n    mao: {strategy: A}", "line 11", `arms[1].mao.strategy: it is A, but arm "mao-b"`},
		{"another strategy of all", "policy: mao-b", "policy: mao-a\nmao: {strategy: B}", "line 11", `mao.strategy: it is B, but arm "mao-a"`},
		{"too many arms", "  - policy: mao-b\n", strings.Repeat("  - policy: mao-b\n", mostArms), "line ", "there are 65: want at most 64"},
		{"too many rows", "    threads: 4", "    replicas: 4000\n    threads: 4", "line 7", "2 arms × 100 seeds × 4013 rows"},
		{"no YAML", "schema: 1", "\tschema", "line ", "tab"},
		{"two documents", "schema: 1", "--- {}\n---\nschema: 1", "", "exactly one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.old, c.new, 1)
			if c.name == "too many rows" {
				text = strings.Replace(text, "[1, 2]", "["+hundred()+"]", 1)
			}
			s, err := Parse([]byte(text), "f.yaml")
			if err == nil {
				t.Fatal("it was taken")
			}
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "parse f.yaml: "+c.line) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v\nwant %s: %s", err, c.line, c.why)
			}
			if !reflect.DeepEqual(s, Scenario{}) {
				t.Errorf("an error, and yet %+v", s)
			}
		})
	}
}

// hundred seeds.
func hundred() string {
	text := "1"
	for i := 2; i <= 100; i++ {
		text += fmt.Sprintf(", %d", i)
	}
	return text
}

// Valid input stays valid: numbers in all of their forms, values behind anchors, a strategy
// that is the policy's.
func TestParseTakes(t *testing.T) {
	for _, c := range []struct{ old, new string }{
		{"rate: 1000", "rate: 1e3"}, {"rate: 1000", "rate: 1.0e+3"}, {"cycles: 100000", "cycles: .5e6"}, {"[1, 2]", "[0x10, 18446744073709551615]"},
		{"threads: 4", "threads: 0x4"}, {"threads: 4", "threads: &n 4\n    replicas: *n"}, {"threads: 4", "threads: 4\n    replicas: ~"},
		{"policy: mao-b", "policy: mao-b\n    mao: {strategy: B}"}, {"policy: mao-b", "policy: mao-a\nmao: {strategy: A}"},
		{"policy: mao-b", "policy: numa-balancing\n    numa_balancing: true"}, {"lasts: 2m", "lasts: 2m\nwarmup: 0s"},
		{"policy: mao-b", "policy: mao-b\n    mao: &m {max_nodes: 1}\n  - {policy: mao-a, mao: *m}"},
	} {
		if _, err := Parse([]byte(strings.Replace(small, c.old, c.new, 1)), "f"); err != nil {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

// Input that would take the YAML library minutes or all memory is refused at once.
func TestParseIsQuick(t *testing.T) {
	begin := time.Now()
	bomb := "x0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("x%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i, i)
	}
	merged := "workloads:\n  - &w0 {name: w, threads: 1}\n"
	lists := "mao: &w0 {node_bandwidth: {0: 1GiB}}\n"
	for i := range 11 {
		merged += fmt.Sprintf("  - &w%d {name: w%d, <<: [%s]}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*w%d,", i), 9))
		lists += fmt.Sprintf("x%d: &w%d {node_bandwidth: {%s}}\n", i, i+1, strings.Repeat(fmt.Sprintf("0: *w%d, ", i), 9))
	}
	numbers := "seeds: [" + strings.Repeat("1,\n", maxFile/3-10) + "]\n" // as many values as possible
	for _, text := range []string{
		merged, lists, lists + "actuate: *w11\n", numbers, strings.Replace(small, "policy: mao-b", "policy: mao-b\n    mao: {<<: {<<: {}}}", 1),
		"arms: " + strings.Repeat("[", 100_000), "arms: " + strings.Repeat("{a: ", 100_000), strings.Repeat("- ", 100_000), strings.Repeat("? ", 100_000),
		strings.Repeat("x", maxFile+1), bomb, bomb + "arms: *a12\n", bomb + "seeds: *a12\n", bomb + "workloads: *a12\n", bomb + "about: *a12\n",
		small + strings.Replace(bomb, "x0:", "about:", 1),
	} {
		if _, err := Parse([]byte(text), "f"); err == nil {
			t.Errorf("%.30s…: it was taken", text)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A thousand mistakes are reported quickly, and not all of them.
func TestManyProblems(t *testing.T) {
	text := small
	for i := range 2000 {
		text += fmt.Sprintf("  - {name: w%d, threads: 1, start: {bind: 7}, memory: {private: 1MiB}, work: {cycles: 1}}\n", i)
	}
	begin := time.Now()
	_, err := Load(context.Background(), []byte(text), "f", tree{})
	if took := time.Since(begin); err == nil || strings.Count(err.Error(), "parse f: ") != mostShown || !strings.Contains(err.Error(), "and 3980 more") || took > 20*time.Second {
		t.Errorf("%v: %.2000v", took, err)
	}
}

// A context that has ended ends loading, too.
func TestLoadHonoursTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s, err := Load(ctx, []byte(small), "f", tree{}); !errors.Is(err, context.Canceled) || !reflect.DeepEqual(s, Setting{}) {
		t.Errorf("%v %+v", err, s)
	}
}

// Parse accepts what Load is asked for, but with more seeds from the command line a result
// would be too large.
func TestKeepTooManySeeds(t *testing.T) {
	s, err := Parse([]byte(strings.Replace(small, "    threads: 4", "    replicas: 4000\n    threads: 4", 1)), "f")
	if err != nil {
		t.Fatal(err)
	}
	var seeds []uint64
	for i := range uint64(100) {
		seeds = append(seeds, i)
	}
	if _, err := s.Keep("", seeds); err == nil || !strings.Contains(err.Error(), "at most 500000") {
		t.Errorf("error %v", err)
	}
}

// tree is a folder in memory.
type tree struct{ fstest.MapFS }

func (t tree) ReadFile(name string) ([]byte, error) { return t.MapFS.ReadFile(name) }
func (t tree) Tree(name string) (fs.FS, error)      { return fs.Sub(t.MapFS, name) }

func TestLoadRefuses(t *testing.T) {
	two, err := os.ReadFile(filepath.Join(scenarios, "../../lab/shapes/two.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shape, err := machine.ParseShape(two, "two.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other, err := profile.Encode(profile.Profile{Schema: profile.Schema, Machine: profile.FingerprintOf(shape.Machine(), "")})
	if err != nil {
		t.Fatal(err)
	}
	files := tree{fstest.MapFS{
		"two.yaml": {Data: two}, "other.json": {Data: other}, "no.json": {Data: []byte(`{"schema":1,"x":2}`)},
		"none.yaml":  {Data: []byte(strings.Replace(string(two), "memory:", "memory: 0 #", 1))},
		"empty/x":    {},
		"dark/sys/x": {},
	}}
	cpuOnly := fstest.MapFS{
		"sys/devices/system/cpu/online": {Data: []byte("0-1\n")}, "sys/devices/system/cpu/possible": {Data: []byte("0-1\n")},
		"sys/devices/system/cpu/present":        {Data: []byte("0-1\n")},
		"sys/devices/system/node/online":        {Data: []byte("0\n")},
		"sys/devices/system/node/node0/cpulist": {Data: []byte("0-1\n")},
	}
	for name, f := range cpuOnly {
		files.MapFS["nomem/"+name] = f
	}
	for _, c := range []struct{ name, old, new, line, why string }{
		{"profile of another machine", "builtin: dual-skylake", "builtin: dual-skylake\n  profile: other.json", "line 5", "other.json is of another machine"},
		{"no profile", "builtin: dual-skylake", "builtin: dual-skylake\n  profile: no.json", "line 5", "no.json"},
		{"no such profile", "builtin: dual-skylake", "builtin: dual-skylake\n  profile: gone.json", "line 5", "gone.json"},
		{"no such shape", "builtin: dual-skylake", "shape: gone.yaml", "line 4", "gone.yaml"},
		{"shape without memory", "builtin: dual-skylake", "shape: none.yaml", "line 4", "none.yaml"},
		{"no tree", "builtin: dual-skylake", "tree: empty", "line 4", "no CPU"},
		{"machine without memory", "builtin: dual-skylake", "tree: nomem", "line ", "memory"},
		{"CPU that is not there", "    demand", "    start: {cpus: 500}\n    demand", "line 21", "workloads[0].start.cpus"},
		{"node that is not there", "    demand", "    start: {bind: 7}\n    demand", "line 21", "workloads[0].start.bind"},
		{"more memory than there is", "private: 1GiB", "private: 1TiB", "line 15", "workloads[0].memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Load(context.Background(), []byte(strings.Replace(small, c.old, c.new, 1)), "f.yaml", files)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "parse f.yaml: "+c.line) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v\nwant %s: %s", err, c.line, c.why)
			}
			if !reflect.DeepEqual(s, Setting{}) {
				t.Errorf("an error, and yet %+v", s)
			}
		})
	}
	if _, err := Load(context.Background(), []byte(strings.NewReplacer("builtin: dual-skylake", "shape: two.yaml\n  profile: other.json", "1GiB", "200MiB", "64MiB", "8MiB").Replace(small)), "f.yaml", files); err != nil {
		t.Errorf("the machine's own profile: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("- !0 "))
	f.Add([]byte("arms: [{policy: mao, mao: {target: 0.5}}]\nmachine: &a {shape: x}\nworkloads: [*a]"))
	data, err := os.ReadFile(filepath.Join(scenarios, "two-services.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, "fuzz.yaml")
		if err != nil && !reflect.DeepEqual(s, Scenario{}) {
			t.Errorf("an error, and yet %+v", s)
		}
		if err == nil {
			if again, err := Parse(data, "fuzz.yaml"); err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("twice is not the same: %v", err)
			}
		}
	})
}
