// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"homenode/internal/doctor"
	"homenode/internal/set"
)

// doctorCase is one script of testdata/doctor: what it makes happen in the guest, and
// what the doctor must then report, or must not.
//
//	# shape: two        the lab's shape; default two
//	# flat              the guest sees one node
//	# for: 3s           how long it looks
//	# ci                part of `make test`; all are part of `make test-full`
//	# want: RULE TEXT   a finding of that rule whose subject, title or evidence has TEXT
//	# silent: RULE      no finding of that rule, and it was able to judge
//	# silent: everything   no finding at all
//	# answer: yes       the verdict
//	# after: no         the verdict once the commands of what was wanted were run ("any":
//	                    whatever it is); the findings are gone then, and the verdict is
//	                    better, or they said that it would not be
//	# stays             the findings are still there then
//	# settle: 30        seconds between the commands and the second look
//	# skip: REASON      it cannot be made to happen in the lab
type doctorCase struct {
	name, shape, duration, answer, after, settle, skip string
	flat, ci, stays                                    bool
	want, silent                                       []string
	script                                             string
}

func readDoctorCase(path string) (doctorCase, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return doctorCase{}, err
	}
	c := doctorCase{name: strings.TrimSuffix(filepath.Base(path), ".sh"), shape: "two", duration: "3s", script: string(data)}
	for s := bufio.NewScanner(strings.NewReader(c.script)); s.Scan() && strings.HasPrefix(s.Text(), "#"); {
		key, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(s.Text(), "#")), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "shape":
			c.shape = value
		case "for":
			c.duration = value
		case "flat":
			c.flat = true
		case "ci":
			c.ci = true
		case "want":
			c.want = append(c.want, value)
		case "silent":
			c.silent = append(c.silent, value)
		case "answer":
			c.answer = value
		case "after":
			c.after = value
		case "stays":
			c.stays = true
		case "settle":
			c.settle = value
		case "skip":
			c.skip = value
		}
	}
	if len(c.want)+len(c.silent) == 0 {
		return c, fmt.Errorf("parse %s: it wants nothing: give it a '# want:' or a '# silent:'", path)
	}
	if len(c.want) > 0 && c.after == "" {
		return c, fmt.Errorf("parse %s: it wants a finding, and not what becomes of it: give it an '# after:'", path)
	}
	return c, nil
}

// Every rule of the doctor in a situation that was made to happen, and in a similar one
// where it must stay silent.
func TestLabDoctor(t *testing.T) {
	t.Parallel()
	lib, err := os.ReadFile("testdata/doctor/lib.sh")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/doctor/*_*.sh")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case in testdata/doctor: %v", err)
	}
	all, tried := os.Getenv("HOMENODE_DOCTOR") == "all", 0
	defer func() { t.Logf("%d of %d cases of the doctor tried", tried, len(files)) }()
	for _, file := range files {
		c, err := readDoctorCase(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.name, func(t *testing.T) {
			if !all && !c.ci {
				t.Skip("not one of the few that every run tries: HOMENODE_DOCTOR=all tries it ('make test-full')")
			}
			if c.skip != "" {
				t.Skip(c.skip)
			}
			tried++
			tryDoctorCase(t, c, string(lib))
		})
	}
}

// lookBegins and lookCost stand around a look. They print what it took of the guest's CPUs:
// the time of the shell's children (cutime and cstime of its line in /proc, in ticks of
// 10 ms) of the time that passed. The exit code is the look's.
const (
	lookBegins = "read -r began idle < /proc/uptime; "
	lookCost   = `
code=$?; read -r ended idle < /proc/uptime; set -- $(cat /proc/$$/stat)
awk "BEGIN { printf \"%.2f s of CPU time in %.2f s\", (${16} + ${17}) / 100, $ended - $began }" >&2; exit $code`
)

func tryDoctorCase(t *testing.T, c doctorCase, lib string) {
	g := doctorGuest(t, c)
	inGuest := func(script string) Result {
		t.Helper()
		ctx, cancel := g.Within(context.Background(), patience)
		defer cancel()
		r, err := g.Run(ctx, "sh", "-c", lib+script)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	defer inGuest("tidy")
	if r := inGuest("tidy 2>/dev/null; set -e\n" + c.script); r.Exit != 0 {
		t.Fatalf("the situation could not be made: exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	examine := func() doctor.Report {
		t.Helper()
		on := "" // the CPU that is kept for daemons, where there is one
		if cpu, ok := g.Shape.Housekeeping.First(); ok {
			on = fmt.Sprintf("taskset %x ", 1<<cpu)
		}
		r := inGuest("model on >/dev/null; " + lookBegins + on + "homenode doctor --for " + c.duration + " -o json" + lookCost)
		if r.Exit != 0 {
			t.Fatalf("homenode doctor: exit %d\n%s", r.Exit, r.Stderr)
		}
		t.Logf("a look of %s: %s", c.duration, r.Stderr)
		var report doctor.Report
		if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
			t.Fatalf("%v\n%s", err, r.Stdout)
		}
		return report
	}
	report := examine()
	judgeDoctor(t, c, report)
	if c.after != "" && !t.Failed() {
		before := report
		for _, f := range wanted(c, before) {
			runRemedy(t, inGuest, f)
		}
		inGuest("sleep " + cmp.Or(c.settle, "0"))
		report = examine()
		judgeRemedy(t, c, before, report)
	}
	if t.Failed() {
		said, _ := json.MarshalIndent(report, "", " ")
		t.Logf("it said: %s", said)
	}
}

// wanted are the findings of the rules that the case wants.
func wanted(c doctorCase, report doctor.Report) (found []doctor.Finding) {
	for _, f := range report.Findings {
		if slices.ContainsFunc(c.want, func(want string) bool { return strings.HasPrefix(want+" ", f.Rule+" ") }) {
			found = append(found, f)
		}
	}
	return found
}

// missing are commands that the guest does not have. All of them only show something;
// docs/limits.md names them.
var missing = []string{"# Linux 6.17 and later", "systemctl ", "perf c2c ", "lscpu ", "numactl --hardware", "numastat "}

// runRemedy runs the commands of a finding as they are printed. A command may fail where
// the finding says that it will not help.
func runRemedy(t *testing.T, inGuest func(string) Result, f doctor.Finding) {
	t.Helper()
	for _, command := range f.Commands {
		if slices.ContainsFunc(missing, func(m string) bool { return strings.Contains(command, m) }) {
			t.Logf("not in the guest: %s", command)
			continue
		}
		for _, line := range typed(command) {
			r := inGuest(line)
			t.Logf("run: %s: exit %d", line, r.Exit)
			if r.Exit != 0 && f.Afterwards == "" {
				t.Errorf("%s: exit %d: %s", line, r.Exit, r.Stderr)
			}
		}
	}
}

var inPlaceOf = regexp.MustCompile(`^(numactl .*--) COMMAND…  # in place of .*, PID (\d+) of /doctor/(\w+)(?:, and so for each of nodes (\S+))?$`)

// typed is what a reader makes of a command: COMMAND… becomes the command line of what is
// stopped, once for each node if it asks for that. The agent, which watches until it is
// stopped, gets a limit.
func typed(command string) []string {
	if command == "homenode agent --dry-run" {
		return []string{"timeout 5 " + command + " || [ $? = 143 ]"}
	}
	m := inPlaceOf.FindStringSubmatch(command)
	if m == nil {
		return []string{command}
	}
	again := fmt.Sprintf("restart %s %s %s", m[3], m[2], m[1])
	nodes, err := set.ParseNodes(m[4])
	if first, ok := nodes.First(); err == nil && ok {
		var all []string
		for node := range nodes.All() {
			all = append(all, strings.ReplaceAll(again, fmt.Sprintf("=%d", first), fmt.Sprintf("=%d", node)))
		}
		return all
	}
	return []string{again}
}

// judgeRemedy: the findings went, unless they only show something, and the verdict is
// better, unless they said that it would not be.
func judgeRemedy(t *testing.T, c doctorCase, before, after doctor.Report) {
	t.Helper()
	judgeAccount(t, after)
	if string(after.Verdict.Answer) != c.after && c.after != "any" {
		t.Errorf("after its commands: verdict %q, want %q: %s", after.Verdict.Answer, c.after, after.Verdict.Why)
	}
	if left := wanted(c, after); len(left) > 0 != c.stays {
		t.Errorf("after its commands %d findings are left (stays: %v): %+v", len(left), c.stays, left)
	}
	t.Logf("%s, %.3g lost; then %s, %.3g lost", before.Verdict.Answer, lost(before), after.Verdict.Answer, lost(after))
	for _, f := range wanted(c, before) {
		if f.Afterwards == "" && !better(before, after) {
			t.Errorf("%s: %s: the verdict was to be better: %s; before: %s", f.Rule, f.Title, after.Verdict.Why, before.Verdict.Why)
		}
	}
}

// better says that a verdict has a better answer, or the same with less lost.
func better(before, after doctor.Report) bool {
	rank := []doctor.Answer{doctor.No, doctor.CannotTell, doctor.Yes}
	was, is := slices.Index(rank, before.Verdict.Answer), slices.Index(rank, after.Verdict.Answer)
	return is < was || is == was && lost(after) < lost(before)
}

// lost is all that a verdict says is lost, in CPUs' worth of time.
func lost(r doctor.Report) (sum float64) {
	for _, n := range r.Verdict.Numbers {
		if n.Name == "lost" || n.Name == "lost_otherwise" {
			sum += n.Value.Or(0)
		}
	}
	return sum
}

// judgeAccount: the findings cost no more than the verdict says is lost.
func judgeAccount(t *testing.T, r doctor.Report) {
	t.Helper()
	sum := 0.0
	for _, f := range r.Findings {
		sum += f.Cost.Or(0)
	}
	if len(r.Verdict.Numbers) > 1 && sum > lost(r)+1e-9 {
		t.Errorf("the findings cost %.3g CPUs, the verdict has %.3g: %+v", sum, lost(r), r.Verdict)
	}
}

// What a reader types for a printed command.
func TestDecisionTyped(t *testing.T) {
	for command, want := range map[string][]string{
		"echo 0 > /x": {"echo 0 > /x"},
		"numactl --interleave=0-1 -- COMMAND…  # in place of homenode-load, PID 7 of /doctor/a": {"restart a 7 numactl --interleave=0-1 --"},
		"numactl --cpunodebind=0 --membind=0 -- COMMAND…  # in place of x, PID 7 of /doctor/a, and so for each of nodes 0-1": {
			"restart a 7 numactl --cpunodebind=0 --membind=0 --", "restart a 7 numactl --cpunodebind=1 --membind=1 --",
		},
	} {
		if got := typed(command); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func doctorGuest(t *testing.T, c doctorCase) *Guest {
	t.Helper()
	if !c.flat {
		return guest(t, c.shape, "v2")
	}
	o := labOptionsFor(t, c.shape, "v2")
	o.Flat = true
	g, err := Boot(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func judgeDoctor(t *testing.T, c doctorCase, report doctor.Report) {
	t.Helper()
	judgeAccount(t, report)
	for _, want := range c.want {
		rule, text, _ := strings.Cut(want, " ")
		found := false
		for _, f := range report.Findings {
			said, _ := json.Marshal(f)
			found = found || f.Rule == rule && strings.Contains(string(said), text)
		}
		if !found {
			t.Errorf("no finding %q that says %q", rule, text)
		}
	}
	for _, rule := range c.silent {
		if rule == "everything" {
			for _, f := range report.Findings {
				t.Errorf("nothing is wrong here: %s: %s", f.Rule, f.Title)
			}
			continue
		}
		for _, f := range report.Findings {
			if f.Rule == rule {
				t.Errorf("it must be silent: %s: %s", rule, f.Title)
			}
		}
		if !slices.Contains(report.Quiet, rule) {
			t.Errorf("it is not among the rules that judged and found nothing: %s", rule)
		}
	}
	if c.answer != "" && string(report.Verdict.Answer) != c.answer {
		t.Errorf("verdict %q, want %q: %s", report.Verdict.Answer, c.answer, report.Verdict.Why)
	}
}
