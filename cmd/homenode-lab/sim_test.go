// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/cli"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/sim/scenario"
)

const exampleScenario = "../../sim/scenarios/two-services.yaml"

// simScenario is a short scenario of two arms, on the built-in machine.
const simScenario = `name: short
about: Two arms for a minute.
machine:
  builtin: dual-skylake
period: 10s
lasts: 1m
seeds: [1, 2]
arms:
  - policy: none
  - policy: mao-b
workloads:
  - name: web
    threads: 4
    approved: true
    memory: {private: 1GiB}
    work:
      cycles: 100000
      instructions: 100000
      regions:
        - {size: 64MiB, accesses: 100}
    demand: {rate: 1000}
`

func TestSimRunAndWhatComesOfIt(t *testing.T) {
	dir := t.TempDir()
	file, result, page := clitest.WriteFile(t, filepath.Join(dir, "short.yaml"), simScenario), filepath.Join(dir, "result.json"), filepath.Join(dir, "page.html")
	code, out, errs := runWith("sim", "run", file, "--out", result)
	if code != 0 || !strings.Contains(strings.ToLower(out), "modelled") || !strings.Contains(errs, "simulating short: 2 arms × 2 seeds") {
		t.Fatalf("exit code %d, %s\n%s", code, out, errs)
	}
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Decode(data)
	if err != nil || len(r.Arms) != 2 || len(r.Arms[1].Runs) != 2 {
		t.Errorf("%v, %+v", err, r)
	}
	if code, again, _ := runWith("sim", "run", file, "-o", "json"); code != 0 || again != string(data) {
		t.Errorf("exit code %d; a second run says something else:\n%s\n%s", code, again, data)
	}
	if code, again, _ := runWith("sim", "run", file, "--out", "-"); code != 0 || again != string(data) {
		t.Errorf("exit code %d; --out - says something else", code)
	}
	_, fromResult, _ := runWith("sim", "compare", result)
	code, fromScenario, _ := runWith("sim", "compare", file)
	if code != 0 || fromResult != fromScenario || !strings.Contains(fromResult, "mao-b") || !strings.Contains(strings.ToLower(fromResult), "modelled") {
		t.Errorf("exit code %d\n%s\n%s", code, fromResult, fromScenario)
	}
	if code, _, errs := runWith("sim", "report", result, "--out", page); code != 0 {
		t.Fatal(errs)
	}
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("</html>")) || !bytes.Contains(bytes.ToLower(html), []byte("modelled")) {
		t.Errorf("%v, %.200s", err, html)
	}
}

func TestSimRunOneArmAndSeed(t *testing.T) {
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "short.yaml"), simScenario)
	code, out, errs := runWith("sim", "run", file, "--arm", "mao-b", "--seed", "7", "--seed", "8", "-o", "json")
	r, err := scenario.Decode([]byte(out))
	if code != 0 || err != nil || len(r.Arms) != 1 || r.Arms[0].Name != "mao-b" || r.Against != "mao-b" || len(r.Seeds) != 2 || r.Seeds[1] != 8 {
		t.Errorf("exit code %d, %v, %s, %+v", code, err, errs, r)
	}
	code, out, _ = runWith("sim", "compare", file, "--seed", "3", "-o", "json")
	var c comparedJSON
	if err := json.Unmarshal([]byte(out), &c); code != 0 || err != nil || c.How != "modelled" || len(c.Compared) == 0 || c.Seeds[0] != 3 {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
}

func TestSimLists(t *testing.T) {
	for _, c := range []struct{ what, want string }{{"policies", "mao-b"}, {"machines", "dual-skylake"}, {"machines", "torus-288"}} {
		code, out, _ := runWith("sim", c.what)
		if code != 0 || !strings.Contains(out, c.want) || !strings.Contains(strings.ToLower(out), "modelled") {
			t.Errorf("exit code %d, %s", code, out)
		}
		var all struct {
			Entries []struct{ Name, About string }
		}
		code, out, _ = runWith("sim", c.what, "-o", "json")
		if err := json.Unmarshal([]byte(out), &all); code != 0 || err != nil || len(all.Entries) == 0 || all.Entries[0].Name == "" {
			t.Errorf("exit code %d, %v, %s", code, err, out)
		}
	}
}

// Bad input is exit code 2, with file, line and reason, nothing on stdout, and
// no file.
func TestSimBadInput(t *testing.T) {
	dir := t.TempDir()
	shapes, err := filepath.Abs("../../lab/shapes/two.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(shapes)
	if err != nil {
		t.Fatal(err)
	}
	two, err := machine.ParseShape(text, "two.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other, err := profile.Encode(profile.Profile{Schema: profile.Schema, Machine: profile.FingerprintOf(two.Machine(), "")})
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "other.json"), string(other))
	clitest.WriteFile(t, filepath.Join(dir, "nomem.yaml"), strings.Replace(string(text), "memory:", "memory: 0 #", 1))
	for _, c := range []struct{ name, old, new, line, why string }{
		{"unknown key", "lasts: 1m", "lasts: 1m\nspeed: 3", "line 7", `unknown field "speed"`},
		{"machine without memory", "builtin: dual-skylake", "shape: nomem.yaml", "line 4", "memory"},
		{"no machine", "  builtin: dual-skylake", "  {}", "line 4", "give shape, tree or builtin"},
		{"negative rate", "rate: 1000", "rate: -1", "line 21", "demand.rate"},
		{"profile of another machine", "builtin: dual-skylake", "builtin: dual-skylake\n  profile: other.json", "line 5", "another machine"},
		{"no such tree", "builtin: dual-skylake", "tree: gone", "line 4", "gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := clitest.WriteFile(t, filepath.Join(dir, "s.yaml"), strings.Replace(simScenario, c.old, c.new, 1))
			out := filepath.Join(dir, "out")
			for _, args := range [][]string{{"run", "--out", out}, {"compare"}, {"report", "--out", out}} {
				code, stdout, errs := runWith(append([]string{"sim", args[0], file}, args[1:]...)...)
				if code != exit.Bad || stdout != "" || !strings.Contains(errs, "s.yaml: "+c.line) || !strings.Contains(errs, c.why) {
					t.Errorf("sim %s: exit code %d, %q\n%s\nwant %s: %s", args[0], code, stdout, errs, c.line, c.why)
				}
				if _, err := os.Stat(out); err == nil {
					t.Error("a file was written")
				}
			}
		})
	}
}

func TestSimBadFlags(t *testing.T) {
	dir := t.TempDir()
	file := clitest.WriteFile(t, filepath.Join(dir, "short.yaml"), simScenario)
	bad := clitest.WriteFile(t, filepath.Join(dir, "bad.json"), `{"schema":1,"how":"measured"}`)
	newer := clitest.WriteFile(t, filepath.Join(dir, "newer.json"), `{"schema":99}`)
	for _, args := range [][]string{
		{"run"}, {"run", file, "more"}, {"run", filepath.Join(dir, "gone.yaml")}, {"run", dir}, {"run", file, "--arm", "unknown"}, {"run", file, "--arm", ""},
		{"run", file, "--seed", "-1"}, {"run", file, "--seed", "1", "--seed", "1"}, {"run", file, "-o", "xml"}, {"run", file, "--out", "-", "-o", "json"},
		{"run", file, "--out", filepath.Join(dir, "no/such/folder")}, {"run", file, "--out", dir}, {"compare", bad}, {"compare", newer}, {"report", bad},
		{"report", file, "--out", ""}, {"compare", file, "-o", "html"}, {"policies", "x"}, {"machines", "x"}, {"fly"},
	} {
		if code, out, errs := runWith(append([]string{"sim"}, args...)...); code != exit.Bad || out != "" || errs == "" {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out, errs)
		}
	}
	result := filepath.Join(dir, "one.json")
	if code, _, errs := runWith("sim", "run", file, "--arm", "none", "--out", result); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := runWith("sim", "compare", result); code != exit.Bad || !strings.Contains(errs, "one arm") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := runWith("sim", "compare", result, "--seed", "1"); code != exit.Bad || !strings.Contains(errs, "has its seeds") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// A scenario may come through a pipe, which can be read once, and may be JSON or
// YAML's flow form.
func TestSimReadsOnce(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{
		simScenario,
		`{"name": "x", "machine": {"builtin": "dual-skylake"}, "period": "10s", "lasts": "1m", "arms": [{"policy": "none"}, {"policy": "mao"}], "workloads": [{"name": "w", "threads": 1, "memory": {"private": "1GiB"}, "work": {"cycles": 1000}, "demand": {"rate": 10}}]}`,
		"{name: x, machine: {builtin: dual-skylake}, period: 10s, lasts: 1m, arms: [{policy: none}, {policy: mao}],\n workloads: [{name: w, threads: 1, memory: {private: 1GiB}, work: {cycles: 1000}, demand: {rate: 10}}]}",
	} {
		if folderOf(filepath.Join(dir, "gone.yaml")) != dir || folderOf("/dev/null") != "." {
			t.Error("files beside a pipe")
		}
		for _, command := range []string{"run", "compare", "report"} {
			pipe := filepath.Join(dir, "pipe")
			os.Remove(pipe)
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			go os.WriteFile(pipe, []byte(text), 0)
			if code, out, errs := runWith("sim", command, pipe); code != 0 || !strings.Contains(strings.ToLower(out), "modelled") {
				t.Errorf("sim %s: exit code %d, %s\n%.200s", command, code, errs, text)
			}
		}
	}
}

// An error about a file of the wrong kind names its kind, and the command that
// reads it.
func TestSimWrongFile(t *testing.T) {
	dir := t.TempDir()
	scene := clitest.WriteFile(t, filepath.Join(dir, "short.yaml"), simScenario)
	result, servers := filepath.Join(dir, "result.json"), filepath.Join(dir, "fleet.json")
	if code, _, errs := runWith("sim", "run", scene, "--out", result); code != 0 {
		t.Fatal(errs)
	}
	clitest.WriteFile(t, servers, `{"schema":1,"how":"modelled","generator_version":1,"seed":1}`)
	bench := clitest.WriteFile(t, filepath.Join(dir, "bench.json"), `{"schema":1,"machine":{},"how":"measured","clock":"tsc","caveats":[]}`)
	for _, c := range []struct{ command, file, why string }{
		{"run", result, "'homenode-lab sim compare' and 'homenode-lab sim report' read it"},
		{"run", servers, "result of 'homenode-lab sim fleet'"}, {"compare", servers, "result of 'homenode-lab sim fleet'"}, {"report", servers, "result of 'homenode-lab sim fleet'"},
		{"run", bench, "'homenode bench'"}, {"compare", bench, "'homenode bench'"},
	} {
		if code, out, errs := runWith("sim", c.command, c.file); code != exit.Bad || out != "" || !strings.Contains(errs, c.why) {
			t.Errorf("sim %s %s: exit code %d, %q, %q", c.command, c.file, code, out, errs)
		}
	}
	whole, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	if half := whole[:len(whole)/2]; whatIs(half) != aResult || whatIs([]byte(`{"how`)) != aScenario || whatIs([]byte(`{"arms":[],"how":"modelled"}`)) != aResult || whatIs(nil) != aScenario {
		t.Error("half a result was accepted")
	}
}

// The first signal asks a simulation to end, the second one ends it.
func TestSimDiesAtTheSecondSignal(t *testing.T) {
	if os.Getenv("HOMENODE_TEST_DEAF") != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		dieAtSecond(ctx)
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("asked")
		time.Sleep(time.Minute) // the simulation ignores the signal
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestSimDiesAtTheSecondSignal$")
	cmd.Env = append(os.Environ(), "HOMENODE_TEST_DEAF=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", "asked"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("it says %q, want %q", lines.Text(), want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	limit, again := time.After(30*time.Second), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	for done := false; !done; {
		select {
		case err = <-ended:
			done = true
		case <-again.C: // the last signal arrived before signal.Reset, which cannot be observed
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-limit:
			t.Fatal("it lives on")
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("error %v", err)
	}
}

// Ctrl-C: exit code 1, one line, no file.
func TestSimInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.json")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	root := rootCommand()
	root.SetArgs([]string{"sim", "run", exampleScenario, "--out", out})
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code := cli.Finish(root.Name(), root.ExecuteContext(ctx), &stderr)
	if _, err := os.Stat(out); code != exit.Failed || stdout.Len() > 0 || !strings.Contains(stderr.String(), "interrupted") || err == nil {
		t.Errorf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
}
