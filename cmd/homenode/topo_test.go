// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"homenode/internal/cli"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/record"
	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/report/topology"
)

// runWith runs a command line and returns exit code, stdout and stderr.
func runWith(args ...string) (int, string, string) { return clitest.Run(rootCommand(), args...) }

// fakeTree is a machine of two nodes in a folder.
func fakeMachineTree(t *testing.T, more kerneltest.Files) string {
	t.Helper()
	return kerneltest.Tree(t, kerneltest.TwoNodes().With(more)).Path("/")
}

// What cannot be shown is exit code 2, one line, and nothing on stdout.
func TestTopoBadInput(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	tree := fakeMachineTree(t, nil)
	clitest.WriteFile(t, in("two/a/sys/x"), "")
	clitest.WriteFile(t, in("two/b/sys/x"), "")
	clitest.WriteFile(t, in("nocpu/sys/devices/system/node/node0/cpulist"), "0\n")
	clitest.WriteFile(t, in("files/a"), "")
	clitest.WriteFile(t, in("deep/1/2/3/4/sys/x"), "")
	clitest.WriteFile(t, in("nofolder/sys/devices/system/cpu"), "")
	if err := errors.Join(syscall.Mkfifo(in("fifo.xml"), 0o600), syscall.Mkfifo(in("fifo.tar.gz"), 0o600)); err != nil {
		t.Fatal(err)
	}
	// FIFOs whose writer writes nothing that is of use; one without a writer is unix.OpenNamed's test
	for _, name := range []string{"fifo.xml", "fifo.tar.gz"} {
		go func() { _ = os.WriteFile(in(name), []byte("no"), 0) }()
	}
	dark := fakeMachineTree(t, kerneltest.Files{"/sys/devices/system/cpu/online": "\n"})
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--root", in("none")}, []string{"none", "no such folder"}},
		{[]string{"--root", clitest.WriteFile(t, in("file"), "x")}, []string{"it is a file", "folder that holds sys/"}},
		{[]string{"--root", clitest.WriteFile(t, in("m.tar.bz2"), "BZh9")}, []string{"m.tar.bz2", "archive", "unpack it first"}},
		{[]string{"--root", clitest.WriteFile(t, in("m.tar.gz"), "BZh9")}, []string{"m.tar.gz", "unpack it first"}},
		{[]string{"--root", in("two")}, []string{"2 of its folders", "two/a"}},
		{[]string{"--root", in("nocpu")}, []string{"nocpu", "no CPU found", "sys/devices/system/cpu"}},
		{[]string{"--root", in("nofolder")}, []string{"nofolder", "read sys/devices/system/cpu", "not a directory"}},
		{[]string{"--root", dark}, []string{"no CPU is online"}},
		{[]string{"--root", in("fifo.tar.gz")}, []string{"fifo.tar.gz"}},
		{[]string{"--from-hwloc", in("fifo.xml")}, []string{"fifo.xml", "no <topology>"}},
		{[]string{"--from-hwloc", clitest.WriteFile(t, in("v99.xml"), "<topology version=\"99\"/>")}, []string{"v99.xml", "version \"99\""}},
		{[]string{"--root", in("files")}, []string{"no sys/"}},
		{[]string{"--root", in("deep")}, []string{"no sys/"}},
		{[]string{"--root", filepath.Join(tree, "sys")}, []string{"folder that holds it"}},
		{[]string{"--from-hwloc", in("none.xml")}, []string{"none.xml"}},
		{[]string{"--from-hwloc", clitest.WriteFile(t, in("a.xml"), "<html><body>no</body></html>")}, []string{"a.xml"}},
		{[]string{"--from-hwloc", clitest.WriteFile(t, in("b.xml"), "\x7fELF\x00\x01")}, []string{"b.xml"}},
		{[]string{"--from-hwloc", dir}, []string{"directory"}},
		{[]string{"--shape", "nonesuch"}, []string{"unknown shape", "nonesuch", "far, four"}},
		{[]string{"--shape", in("none.yaml")}, []string{"none.yaml"}},
		{[]string{"--shape", clitest.WriteFile(t, in("bad.yaml"), "name: x\ncolour: red\n")}, []string{"bad.yaml", "colour"}},
		{[]string{"--root", tree, "--shape", "two"}, []string{"root", "shape"}},
		{[]string{"--root", tree, "-o", "xml"}, []string{"text, json or yaml"}},
		{[]string{"--root", tree, "--svg", "-", "-o", "json"}, []string{"only one output"}},
		{[]string{"--root", tree, "--svg", "-", "--hwloc", "-"}, []string{"only one output"}},
		{[]string{"--root", tree, "--png", "-", "--pdf", "-"}, []string{"only one output"}},
		{[]string{"--root", tree, "--pdf", "-", "-o", "json"}, []string{"only one output"}},
		{[]string{"--root", tree, "--png", in("none/x.png")}, []string{"none/x.png"}},
		{[]string{"--root", tree, "--svg", in("none/x.svg")}, []string{"none/x.svg"}},
		{[]string{"--root", ""}, []string{"--root is empty"}},
		{[]string{"extra"}, []string{"no arguments"}},
	} {
		args := append([]string{"topo"}, c.args...)
		code, out, errs := runWith(args...)
		if code != exit.Bad || out != "" || !strings.HasPrefix(errs, "homenode: ") || strings.Count(errs, "\n") != 1 && !strings.Contains(errs, "bad.yaml") { // that shows the line
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
		for _, w := range c.want {
			if !strings.Contains(errs, w) {
				t.Errorf("%v: no %q in: %s", c.args, w, errs)
			}
		}
	}
}

// What can be shown in part is shown, with a line for each missing part.
func TestTopoPartly(t *testing.T) {
	tree := fakeMachineTree(t, kerneltest.Files{
		"/sys/devices/system/node/node1/distance":                   "21 x\x1b[31m\n",
		"/sys/devices/system/node/node0/meminfo":                    "Node 0 MemTo",
		"/sys/devices/system/cpu/cpu2/topology/core_cpus_list":      "2,,3\n",
		"/sys/devices/system/cpu/cpu3/topology/physical_package_id": "\x00\x01\x02",
	})
	code, out, errs := runWith("topo", "--root", tree, "-o", "json")
	var doc struct {
		CPUs     int `json:"cpu_count"`
		Problems []string
		Nodes    []struct {
			Memory    *int   `json:"memory_bytes"`
			Distances []*int `json:"distances"`
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exit.Partly || doc.CPUs != 4 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if len(doc.Problems) != 4 || strings.Count(errs, "\n") != 4 || doc.Nodes[0].Memory != nil || doc.Nodes[1].Memory == nil || doc.Nodes[1].Distances[0] != nil {
		t.Errorf("%s\n%s", out, errs)
	}
	for _, want := range []string{"node1/distance", `field 2 "x`, "node0/meminfo", "core_cpus_list", "physical_package_id"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
	if strings.Contains(out+errs, "\x1b") {
		t.Error("a control character came through")
	}
}

// Links in a recorded tree do not lead to this host's own /sys.
func TestTopoStaysInTheTree(t *testing.T) {
	tree := fakeMachineTree(t, nil)
	path := filepath.Join(tree, "sys/devices/system/node/node0/meminfo")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/meminfo", path); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runWith("topo", "--root", tree, "-o", "json")
	if code != exit.Partly || !strings.Contains(out, `"memory_bytes": null`) || !strings.Contains(errs, "node0/meminfo") {
		t.Errorf("exit code %d: %s%s", code, errs, out)
	}
}

// hwloc's tree cannot hold groups that cross: they are named, and the rest is written.
func TestTopoOfCrossingGroups(t *testing.T) {
	files := kerneltest.Files{}
	for cpu, shared := range []string{"0\n", "1-2\n", "1-2\n", "3\n"} {
		index := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cache/index3/", cpu)
		files[index+"level"], files[index+"type"], files[index+"shared_cpu_list"] = "3\n", "Unified\n", shared
	}
	tree, out := fakeMachineTree(t, files), filepath.Join(t.TempDir(), "x.xml")
	code, text, errs := runWith("topo", "--root", tree, "--hwloc", out)
	if code != exit.Partly || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "left out L3Cache 1-2") || !strings.Contains(text, "4 CPUs") {
		t.Errorf("exit code %d: %s%s", code, errs, text)
	}
	if code, text, errs = runWith("topo", "--from-hwloc", out); code != exit.Done || !strings.Contains(text, "4 CPUs") {
		t.Errorf("what was written: exit code %d: %s%s", code, errs, text)
	}
}

func TestTopoOutputs(t *testing.T) {
	tree := fakeMachineTree(t, nil)
	outer := t.TempDir()
	if err := os.Rename(tree, filepath.Join(outer, "inner")); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runWith("topo", "--root", outer)
	if code != exit.Done || !strings.HasPrefix(out, "4 CPUs (SMT unknown) in 2 packages and 2 nodes, 1 GiB;") || !strings.Contains(errs, "reading "+outer+"/inner") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	picture := filepath.Join(outer, "x.svg")
	code, out, errs = runWith("topo", "--shape", "far", "--svg", picture)
	data, err := os.ReadFile(picture)
	if code != exit.Done || err != nil || !bytes.HasPrefix(data, []byte("<svg ")) || !strings.Contains(out, "3 nodes") {
		t.Errorf("exit code %d, %v: %s", code, err, errs)
	}
	if code, out, _ = runWith("topo", "--shape", "far", "--svg", "-"); code != exit.Done || out != string(data) {
		t.Errorf("exit code %d: the picture on stdout is another", code)
	}
	pdf, raster := filepath.Join(outer, "x.pdf"), filepath.Join(outer, "x.png")
	if code, _, errs = runWith("topo", "--shape", "far", "--pdf", pdf, "--png", raster); code != exit.Done {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for file, start := range map[string]string{pdf: "%PDF-", raster: "\x89PNG"} {
		if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, []byte(start)) {
			t.Errorf("%s: %.20q, %v", file, data, err)
		}
	}
	if code, out, _ = runWith("topo", "--shape", "far", "--png", "-"); code != exit.Done || !strings.HasPrefix(out, "\x89PNG") {
		t.Errorf("exit code %d: no PNG on stdout", code)
	}
	if code, out, errs = runWith("topo"); code != exit.Done && code != exit.Partly || !strings.Contains(out, "CPU") {
		t.Errorf("live: exit code %d: %s%s", code, out, errs)
	}
}

func TestRecord(t *testing.T) {
	tree := fakeMachineTree(t, kerneltest.Files{"/etc/hostname": "SECRET\n", "/proc/cmdline": "SECRET\n", "/sys/devices/system/node/node0/serial": "SECRET\n"})
	out := filepath.Join(t.TempDir(), "m.tar.gz")
	code, text, errs := runWith("record", "--root", tree, "--out", out)
	if code != exit.Done || !strings.Contains(text, "saved 4 CPUs and 2 nodes") || !strings.Contains(text, "no serial numbers") {
		t.Fatalf("exit code %d: %s%s", code, text, errs)
	}
	_, want, _ := runWith("topo", "--root", tree, "-o", "json")
	code, got, errs := runWith("topo", "--root", out, "-o", "json")
	if code != exit.Done || !sameMachine(t, got, want) {
		t.Errorf("exit code %d: %s%s, want %s", code, errs, got, want)
	}
	for _, c := range [][]string{
		{"record", "--root", tree, "--out", out},
		{"record", "--root", tree, "--out", tree, "--force"},
		{"record", "--root", tree, "--out", ""},
		{"record", "--root", "", "--out", out + "x"},
		{"record", "--root", filepath.Join(tree, "none")},
		{"record", "--root", t.TempDir(), "--out", out + "x"},
	} {
		if code, text, errs := runWith(c...); code != exit.Bad || text != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit code %d: %s%s", c, code, text, errs)
		}
	}
	if code, _, errs := runWith("record", "--root", tree, "--out", out, "--force"); code != exit.Done {
		t.Errorf("--force: exit code %d: %s", code, errs)
	}
}

// sameMachine compares two documents except for their origin.
func sameMachine(t *testing.T, a, b string) bool {
	t.Helper()
	var docs [2]map[string]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &docs[i]); err != nil {
			t.Fatal(err)
		}
		delete(docs[i], "origin")
	}
	return len(docs[0]) > 10 && reflect.DeepEqual(docs[0], docs[1])
}

// Every recorded machine is shown in all formats, and comes back from a
// recording. The test works in memory: on a disk, unpacking takes a minute.
func TestTopoOfRecorded(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join(machinetest.Dir(t), "*.tar.*"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			tree := machinetest.Unpack(t, archive)
			want, wantErr := machine.ParseSysfs(tree, archive)
			saved, err := record.Gather(tree, want.PageSize)
			if err != nil || len(want.CPUs) == 0 {
				t.Fatalf("%d CPUs, %v, %v", len(want.CPUs), wantErr, err)
			}
			got, gotErr := machine.ParseSysfs(saved.FS(), archive)
			if !reflect.DeepEqual(got, want) || len(cli.Sentences(gotErr)) != len(cli.Sentences(wantErr)) {
				t.Errorf("came back as another machine: %v, want %v", gotErr, wantErr)
			}
			var picture bytes.Buffer
			if err := errors.Join(topology.SVG(&picture, got), topology.JSON(io.Discard, got, nil), topology.Text(io.Discard, got)); err != nil {
				t.Error(err)
			}
			if err := xml.Unmarshal(picture.Bytes(), new(struct{})); err != nil {
				t.Error(err)
			}
		})
	}
}
