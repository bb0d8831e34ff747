// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/interference"
	"homenode/internal/policy/vmmap"
	"homenode/internal/source"
	"homenode/internal/views"
)

// Recordings of make bench-classes: the five references and two programs of busybox, in
// the lab's shape two.
func classesFixture(name string) string {
	return filepath.Join("testdata", "classes", name+".jsonl.gz")
}

func fixtureReferences() (all []string) {
	for _, name := range []string{"rabbit", "devil", "memory", "far", "crowded"} {
		all = append(all, name+"="+classesFixture("reference-"+name))
	}
	return all
}

// References become a file of constants. With them a program of the lab gets the class
// that was measured there: gzip is a rabbit (decision 0020).
func TestClassesCommand(t *testing.T) {
	o := classesOptions{output: "text", workload: "/trial/p", references: fixtureReferences(), stderr: os.Stderr}
	var text bytes.Buffer
	if err := runClasses(t.Context(), &text, nil, o); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "constants.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, missing, err := source.Constants(file)
	if err != nil || len(missing) > 0 || f.DRAM < 4 || f.DRAM > 7 || f.Remote < 1.4 || f.Remote > 1.9 {
		t.Fatalf("constants of the lab: %v: %+v\n%s", err, f, text.String())
	}
	o.references, o.constants, o.output = nil, file, "json"
	var out bytes.Buffer
	if err := runClasses(t.Context(), &out, []string{classesFixture("gzip-alone")}, o); err != nil {
		t.Fatal(err)
	}
	var r interference.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Workloads) != 1 || r.Constants != f {
		t.Fatalf("%v: %s", err, out.String())
	}
	if wl := r.Workloads[0]; wl.Class != vmmap.Unknown || !strings.Contains(wl.Doubt, "never seen with less of a cache") || wl.Sensitive.Or(true) || wl.Counted.String() != "modelled" || len(r.Notes) != 0 {
		t.Errorf("gzip: %+v, notes %q", wl, r.Notes)
	}
	out.Reset()
	o.output = "text"
	if err := runClasses(t.Context(), &out, []string{classesFixture("gzip-alone"), classesFixture("awk-count-alone")}, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"constants: " + file, "/trial/p", "HOLDS OF A CACHE", "counters, which are modelled", "18 of 20 real programs was right"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// What was never squeezed has an interval. With default constants, in whole or in
// part, the output says where they come from.
func TestClassesFromWindowsAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "constants.yaml")
	const most = "remote: 1.65\ndevil_rate: 0.0142\nrabbit_rate: 0.023\ncrowd: 0.02\n"
	for _, c := range []struct {
		constants string
		want      []string
		notes     int
	}{
		{"dram: 5.42\n" + most, []string{"constants: " + file, "sheep", "An interval in brackets"}, 0},
		{most, []string{"note: " + file + " has no dram: ", "rest on simulated machines"}, 1},
		{"", []string{"constants: the defaults, from simulated machines", "rest on simulated machines"}, 1},
	} {
		o := classesOptions{output: "text", stderr: os.Stderr}
		if c.constants != "" {
			o.constants = file
			if err := os.WriteFile(file, []byte(c.constants), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := runClasses(t.Context(), &out, []string{classesFixture("awk-count-alone")}, o); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
		if n := strings.Count(out.String(), "note: "); n != c.notes {
			t.Errorf("%d notes:\n%s", n, out.String())
		}
	}
}

// What is printed is read back unchanged, also the smallest figures.
func TestConstantsReadBack(t *testing.T) {
	f := vmmap.DefaultConfig().Infer
	f.Crowd, f.DevilRate, f.DRAM = 1e-9, 3e-5, 12345
	file := filepath.Join(t.TempDir(), "c")
	var text bytes.Buffer
	if err := views.Constants(&text, f, []string{"x\x1b[31m=y"}, "text"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := source.Constants(file); err != nil || got != f || strings.Contains(text.String(), "\x1b") {
		t.Errorf("%+v, %v\n%s", got, err, text.String())
	}
}

func TestClassesInterrupted(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	err := runClasses(ctx, io.Discard, []string{classesFixture("gzip-alone")}, classesOptions{output: "text", stderr: os.Stderr})
	var code exit.Error
	if err == nil || errors.As(err, &code) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
}

func TestClassesRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	day := string(recordedDay(t, 3, ""))
	good, cut := write("good", day), write("cut", day[:len(day)-40])
	empty := write("empty", strings.SplitAfter(day, "\n")[0])
	same := fixtureReferences()
	for i := range same { // each is the rabbit's recording under another name
		name, _, _ := strings.Cut(same[i], "=")
		data, err := os.ReadFile(classesFixture("reference-rabbit"))
		if err != nil {
			t.Fatal(err)
		}
		same[i] = name + "=" + write("as-"+name, string(data))
	}
	exchanged := func(a, b int) []string {
		all := fixtureReferences()
		nameA, fileA, _ := strings.Cut(all[a], "=")
		nameB, fileB, _ := strings.Cut(all[b], "=")
		all[a], all[b] = nameA+"="+fileB, nameB+"="+fileA
		return all
	}
	for name, c := range map[string]struct {
		files []string
		o     classesOptions
		code  int
		want  string
	}{
		"nothing":            {nil, classesOptions{}, exit.Bad, "want a recording"},
		"no file":            {[]string{filepath.Join(dir, "none")}, classesOptions{}, exit.Bad, "read recording: open "},
		"not one":            {[]string{write("rubbish", "rubbish\n")}, classesOptions{}, exit.Bad, "line 1"},
		"no window":          {[]string{empty}, classesOptions{}, exit.Bad, "no window"},
		"cut off":            {[]string{cut}, classesOptions{}, exit.Partly, ""},
		"another machine":    {[]string{classesFixture("gzip-alone"), good}, classesOptions{}, exit.Bad, "another machine"},
		"other workload":     {[]string{good}, classesOptions{workload: "/b"}, exit.Nothing, "none of 1 workloads"},
		"a bad pattern":      {[]string{good}, classesOptions{workload: "["}, exit.Bad, "--workload"},
		"no constants":       {[]string{good}, classesOptions{constants: filepath.Join(dir, "none")}, exit.Bad, "read constants"},
		"unknown constant":   {[]string{good}, classesOptions{constants: write("c1", "drum: 3\n")}, exit.Bad, "drum"},
		"a wrong one":        {[]string{good}, classesOptions{constants: write("c2", "crowd: 1\ndram: 0.5\n")}, exit.Bad, "2 | dram"},
		"a word":             {[]string{good}, classesOptions{constants: write("c3", "dram: much\n")}, exit.Bad, "want a number"},
		"a list":             {[]string{good}, classesOptions{constants: write("c4", "- dram\n")}, exit.Bad, "want settings"},
		"no constant":        {[]string{good}, classesOptions{constants: write("c6", "# none\n")}, exit.Bad, "has none"},
		"endless":            {[]string{good}, classesOptions{constants: "/dev/zero"}, exit.Bad, "more than"},
		"a huge one":         {[]string{good}, classesOptions{constants: write("c7", "dram: 2.0e6\n")}, exit.Bad, "below a million"},
		"beyond any":         {[]string{good}, classesOptions{constants: write("c8", "dram: 1.0e300\n")}, exit.Bad, "want a number, at most 1e+18"},
		"the past":           {[]string{good, good}, classesOptions{}, exit.Bad, "order"},
		"both":               {[]string{good}, classesOptions{references: same}, exit.Bad, "neither a recording"},
		"rabbit, devil":      {nil, classesOptions{references: exchanged(0, 1), workload: "/trial/p"}, exit.Bad, "\"rabbit\" reads from memory"},
		"devil, memory":      {nil, classesOptions{references: exchanged(1, 2), workload: "/trial/p"}, exit.Bad, "lines a cycle"},
		"memory, far":        {nil, classesOptions{references: exchanged(2, 3), workload: "/trial/p"}, exit.Bad, "\"memory\" reads 0.9"},
		"far, crowded":       {nil, classesOptions{references: exchanged(3, 4), workload: "/trial/p"}, exit.Bad, "\"crowded\" reads 0.9"},
		"one for two":        {nil, classesOptions{references: []string{same[0], "memory=" + strings.TrimPrefix(same[0], "rabbit=")}, workload: "/trial/p"}, exit.Bad, "given twice"},
		"large":              {[]string{good}, classesOptions{constants: write("c5", "dram: 3 #"+strings.Repeat("x", source.MaxConstants))}, exit.Bad, "more than"},
		"unknown reference":  {nil, classesOptions{references: []string{"sheep=x"}}, exit.Bad, "want rabbit"},
		"no name":            {nil, classesOptions{references: []string{classesFixture("gzip-alone")}}, exit.Bad, "want rabbit"},
		"twice":              {nil, classesOptions{references: []string{same[0], "rabbit=x"}, workload: "/trial/p"}, exit.Bad, "each once"},
		"missing":            {nil, classesOptions{references: same[:3], workload: "/trial/p"}, exit.Bad, "crowded and far missing"},
		"which":              {nil, classesOptions{references: []string{"crowded=" + classesFixture("reference-crowded")}}, exit.Bad, "want one, the load"},
		"too short":          {nil, classesOptions{references: []string{"rabbit=" + write("short", strings.Join(strings.SplitAfter(day, "\n")[:3], ""))}, workload: "/a"}, exit.Bad, "windows: want 3"},
		"what does not tell": {nil, classesOptions{references: same, workload: "/trial/p"}, exit.Bad, "\"devil\" reads from memory in 0.00"},
	} {
		var out bytes.Buffer
		c.o.output, c.o.stderr = "json", os.Stderr
		err := runClasses(t.Context(), &out, c.files, c.o)
		var code exit.Error
		if c.code == exit.Partly && !strings.Contains(out.String(), "cut off") {
			t.Errorf("%s: no word of it in %s", name, out.String())
		}
		if !errors.As(err, &code) || code.Code != c.code || !strings.Contains(err.Error(), c.want) || c.code != exit.Partly && out.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
