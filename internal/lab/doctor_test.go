// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homenode/internal/doctor"
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
//	# after: no         the verdict once the commands of what was wanted were run; the
//	                    finding is gone then
type doctorCase struct {
	name, shape, duration, answer, after string
	flat, ci                             bool
	want, silent                         []string
	script                               string
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
		}
	}
	if len(c.want)+len(c.silent) == 0 {
		return c, fmt.Errorf("parse %s: it wants nothing: give it a '# want:' or a '# silent:'", path)
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
		for _, command := range remedies(c, report) {
			t.Logf("run: %s", command)
			newer := strings.Contains(command, "# Linux 6.17 and later") // the guest's kernel is 6.1: the next command serves
			if r := inGuest(command); r.Exit != 0 && !newer {
				t.Errorf("%s: exit %d: %s", command, r.Exit, r.Stderr)
			}
		}
		report = examine()
		judgeRemedy(t, c, report)
	}
	if t.Failed() {
		said, _ := json.MarshalIndent(report, "", " ")
		t.Logf("it said: %s", said)
	}
}

// remedies are the commands of the findings that the case wants.
func remedies(c doctorCase, report doctor.Report) (commands []string) {
	for _, f := range report.Findings {
		for _, want := range c.want {
			if rule, _, _ := strings.Cut(want, " "); f.Rule == rule {
				commands = append(commands, f.Commands...)
			}
		}
	}
	return commands
}

func judgeRemedy(t *testing.T, c doctorCase, report doctor.Report) {
	t.Helper()
	if string(report.Verdict.Answer) != c.after {
		t.Errorf("after its commands: verdict %q, want %q: %s", report.Verdict.Answer, c.after, report.Verdict.Why)
	}
	if left := remedies(c, report); len(left) > 0 {
		t.Errorf("after its commands it says again: %q", left)
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
