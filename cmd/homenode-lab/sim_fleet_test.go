// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// simFleet runs the command. The code is the exit code of the process.
func simFleet(t *testing.T, ctx context.Context, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := rootCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append([]string{"sim", "fleet", "--shapes", "../../lab/shapes"}, args...))
	code = cli.Finish(cmd.Name(), cmd.ExecuteContext(ctx), &errs)
	return out.String(), errs.String(), code
}

var oneHour = []string{"--servers", "3", "--days", "0.1", "--workloads", "6"}

func TestSimFleetAnswers(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"With MAO ", "on 3 servers (modelled)", "dual-skylake", "All figures are modelled"}},
		{[]string{"--mao", "off"}, []string{"Without MAO "}},
		{[]string{"--mao", "0.34"}, []string{"MAO changes CPU time per operation by ", "Unpaired, 1 server with MAO against 2 servers", "(one server: the spread over servers is unknown)"}},
		{[]string{"--mao", "0.5", "--servers", "4"}, []string{"Unpaired, 2 servers with MAO against 2 servers", "95% interval over servers", "too narrow"}},
		{[]string{"--dataset", filepath.Join(t.TempDir(), "r")}, []string{"Paired, the same 3 servers", "95% interval over servers", "controls that were never bound", "leaves a replica alone for its first 1h"}},
		{[]string{"--machine", "two"}, []string{"shape:two"}},
	} {
		out, errs, code := simFleet(t, t.Context(), append(oneHour, c.args...)...)
		if code != exit.Done {
			t.Fatalf("%v: code %d: %s", c.args, code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, out)
			}
		}
	}
}

func TestSimFleetFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	run := func(name, workers string) (string, []byte) {
		args := append([]string{"--dataset", file(name), "--workers", workers, "-o", "json", "--out", file(name + ".json")}, "--servers", "3", "--days", "0.15", "--workloads", "6")
		out, errs, code := simFleet(t, t.Context(), args...)
		if code != exit.Done {
			t.Fatalf("code %d: %s", code, errs)
		}
		data, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(file(name + ".json"))
		if err != nil || string(kept) != out {
			t.Errorf("--out differs from -o json: %v", err)
		}
		return out, data
	}
	out, a := run("a.parquet", "1")
	again, b := run("b.parquet", "2")
	if !bytes.Equal(a, b) || out != again {
		t.Error("two runs of one seed differ")
	}
	r, err := fleet.Decode([]byte(out))
	if err != nil || r.How != "modelled" || !r.Change.Paired || r.DataSet.Rows == 0 || r.DataSet.NoiseMeasured != (errorOf(fleet.PackagedNoise()) == nil) {
		t.Errorf("%+v, %v", r, err)
	}
	left, err := filepath.Glob(file(".homenode-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func errorOf(n fleet.Noise) error { _, err := n.Measured(); return err }

func TestSimFleetRefuses(t *testing.T) {
	dir := t.TempDir()
	noise := filepath.Join(dir, "noise.json")
	if err := os.WriteFile(noise, []byte(`{"schema":1,"source":"x","unmeasured":true,"gains":{"cpu":0.1}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	link, hard := filepath.Join(t.TempDir(), "link"), filepath.Join(dir, "hard")
	if err := errors.Join(os.Symlink(dir, link), os.Link(noise, hard)); err != nil {
		t.Fatal(err)
	}
	other := otherProfile(t, dir)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--servers", "0"}, "--servers is 0"},
		{[]string{"--servers", "-3"}, "--servers is -3"},
		{[]string{"--days", "-1"}, "--days is -1"},
		{[]string{"--days", "0"}, "--days is 0"},
		{[]string{"--days", "NaN"}, "--days is NaN"},
		{[]string{"--mao", "1.5"}, "--mao is \"1.5\""},
		{[]string{"--mao", "maybe"}, "--mao is \"maybe\""},
		{[]string{"--workloads", "0"}, "0 workloads"},
		{[]string{"--period", "0s"}, "windows of 0s"},
		{[]string{"--period", "-1m"}, "windows of -1m"},
		{[]string{"--machine", "nosuch"}, "unknown shape"},
		{[]string{"--machine", dir}, "no sys/"},
		{[]string{"--machine", ""}, "--machine is empty"},
		{[]string{"--profile", filepath.Join(dir, "none")}, "read profile"},
		{[]string{"--profile", other}, "is of another machine"},
		{[]string{"--dataset", filepath.Join(dir, "no", "rows.parquet")}, "there is no folder"},
		{[]string{"--dataset", dir}, "not a regular file"},
		{[]string{"--out", filepath.Join(dir, "no", "r.json")}, "there is no folder"},
		{[]string{"--dataset", filepath.Join(dir, "r"), "--mao", "off"}, "nothing is bound"},
		{[]string{"--noise", noise}, "unmeasured"},
		{[]string{"--noise", filepath.Join(dir, "none")}, "read noise"},
		{[]string{"--mao", "0.1"}, "of 3 servers is none of them"},
		{[]string{"--days", "0.0417", "--period", "1h"}, "must last 2h"},
		{[]string{"--days", "0.06", "--dataset", filepath.Join(dir, "r")}, "want 1h40m0s at least"},
		{[]string{"--dataset", filepath.Join(dir, "r"), "--out", dir + "/./r"}, "are the same file"},
		{[]string{"--dataset", filepath.Join(dir, "r"), "--out", filepath.Join(link, "r")}, "are the same file"},
		{[]string{"--dataset", noise, "--out", hard}, "are the same file"},
		{[]string{"--workers", "0"}, "--workers is 0"},
		{[]string{"-o", "xml"}, "-o is \"xml\""},
		{[]string{"--seed", "-1"}, "0 or more"},
		{[]string{"extra"}, "no arguments"},
	} {
		out, errs, code := simFleet(t, t.Context(), append(oneHour, c.args...)...)
		if code != exit.Bad || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d, want %d and %q: %s%s", c.args, code, exit.Bad, c.want, out, errs)
		}
	}
}

// A data set without rows is not a success, and leaves no file.
func TestSimFleetWithoutRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.parquet")
	out, errs, code := simFleet(t, t.Context(), "--servers", "1", "--days", "0.0695", "--workloads", "2", "--dataset", path)
	if code != exit.Nothing || !strings.Contains(errs, "no rows: ") || !strings.Contains(errs, "bound too briefly") || !strings.Contains(out, "\n0 rows") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file without rows was written")
	}
}

// The command in a data set makes it again, whatever files it needed.
func TestSimFleetCommandAgain(t *testing.T) {
	shape, err := os.ReadFile("../../lab/shapes/two.yaml")
	t.Chdir(t.TempDir())
	var noise []byte
	if n, err := json.Marshal(fleet.PackagedNoise()); err == nil {
		noise = bytes.Replace(n, []byte(`"repeats":10`), []byte(`"repeats":11`), 1)
	}
	if err = errors.Join(err, os.Mkdir("my shapes", 0o755), os.WriteFile("my shapes/own.yaml", bytes.ReplaceAll(shape, []byte("name: two"), []byte("name: own")), 0o644),
		os.WriteFile("it's.json", noise, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, errs, code := simFleet(t, t.Context(), "--shapes", "my shapes", "--machine", "own", "--noise", "it's.json", "--servers", "2", "--days", "0.1", "--workloads", "3", "--dataset", "first.parquet")
	if code != exit.Done {
		t.Fatalf("code %d: %s", code, errs)
	}
	first, err := os.ReadFile("first.parquet")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(first, []byte("homenode-lab sim fleet "))
	line := string(first[at : at+bytes.Index(first[at:], []byte("--dataset rows.parquet"))+len("--dataset rows.parquet")])
	words, err := exec.Command("sh", "-c", `for w in `+line+`; do printf '%s\n' "$w"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := simFleet(t, t.Context(), strings.Split(strings.TrimSpace(string(words)), "\n")[3:]...); code != exit.Done {
		t.Fatalf("%s: code %d: %s", line, code, errs)
	}
	if again, err := os.ReadFile("rows.parquet"); err != nil || !bytes.Equal(again, first) {
		t.Errorf("%s: another file: %v", line, err)
	}
}

// otherProfile is a profile of a machine that no test simulates.
func otherProfile(t *testing.T, dir string) string {
	t.Helper()
	m, _ := memsys.DualSkylake()
	nodes := append([]machine.Node(nil), m.Nodes...)
	nodes[1].Memory = unit.Some(unit.GiB)
	m.Nodes = nodes[:1]
	data, err := json.Marshal(profile.Profile{Schema: profile.Schema, How: unit.HowMeasured, Origin: "other", Machine: profile.FingerprintOf(m, "")})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "other.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSimFleetStops(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("Ctrl-C"))
	_, errs, code := simFleet(t, ctx, "--servers", "50", "--dataset", filepath.Join(dir, "rows.parquet"), "--out", filepath.Join(dir, "r.json"))
	if code != exit.Failed || !strings.Contains(errs, "stopped: nothing was written") {
		t.Errorf("code %d: %s", code, errs)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
