// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/golden"
	"homenode/internal/machine"
)

const root = "../.."

func shapeNamed(t testing.TB, name string) machine.Shape {
	t.Helper()
	path := filepath.Join(root, "lab/shapes", name+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := machine.ParseShape(data, path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecisionQEMUArguments(t *testing.T) {
	for _, name := range []string{"two", "four", "opteron", "far"} {
		p := bootPlan{
			assets: Assets{Kernel: "LAB/vmlinux", Plugin: "LAB/plugin.so"},
			shape:  shapeNamed(t, name), dir: "RUN", cgroup: "v2",
		}
		golden.Check(t, filepath.Join("testdata", "qemu-"+name+".golden"), []byte(strings.Join(qemuArgs(p), "\n")+"\n"))
	}
	p := bootPlan{
		assets: Assets{Kernel: "LAB/vmlinux", Plugin: "LAB/plugin.so", Debian: "LAB/debian.img"},
		shape:  shapeNamed(t, "two"), dir: "RUN", guest: Debian, cgroup: "v2",
	}
	golden.Check(t, filepath.Join("testdata", "qemu-two-debian.golden"), []byte(strings.Join(qemuArgs(p), "\n")+"\n"))
}

// The guest's init passes the number to the PMU module; without one the module's
// default holds.
func TestDecisionCountersArgument(t *testing.T) {
	for n, want := range map[int]bool{0: false, 4: true} {
		args := qemuArgs(bootPlan{shape: shapeNamed(t, "two"), cgroup: "v2", counters: n})
		if got := strings.Contains(args[len(args)-1], " homenode.counters=4"); got != want {
			t.Errorf("%d counters: %s", n, args[len(args)-1])
		}
	}
}

// The same holds for the CPU that it looks like.
func TestDecisionPersonalityArgument(t *testing.T) {
	for name, want := range map[string]bool{"": false, "zen-4": true} {
		args := qemuArgs(bootPlan{shape: shapeNamed(t, "two"), cgroup: "v2", personality: name})
		if got := strings.Contains(args[len(args)-1], " homenode.personality=zen-4"); got != want {
			t.Errorf("%q: %s", name, args[len(args)-1])
		}
	}
}

func TestDecisionCalibration(t *testing.T) {
	for _, c := range []struct {
		about string
		t     touched
		ok    bool
	}{
		{"exact", touched{Lines: 4096, DRAM: []uint64{0, 4096}}, true},
		{"the kernel's own accesses", touched{Lines: 4096, DRAM: []uint64{300, 4240}}, true},
		{"swapped nodes", touched{Lines: 4096, DRAM: []uint64{4100, 30}}, false},
		{"counted twice", touched{Lines: 4096, DRAM: []uint64{0, 8192}}, false},
		{"also counted elsewhere", touched{Lines: 4096, DRAM: []uint64{4096, 4096}}, false},
		{"nothing read", touched{Lines: 0, DRAM: []uint64{0, 0}}, false},
		{"a node the model lacks", touched{Lines: 4096, DRAM: []uint64{4096}}, false},
	} {
		if err := checkTouched(c.t, 1); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.about, err)
		}
	}
}

func TestDecodeTouched(t *testing.T) {
	for text, want := range map[string]string{
		`{"node":1,"lines":4096,"dram":[5,4100]}`: "{1 4096 [5 4100]}",
		`{"node":1,"lines":4096,"dram":[null,4]}`: "node 0 was off the PMU",
		`{"node":1,"lines":-1,"dram":[]}`:         "touch",
		`dram`:                                    `"dram"`,
	} {
		got, err := parseTouched([]byte(text))
		if told := fmt.Sprint(got, err); !strings.Contains(told, want) {
			t.Errorf("%s: %s, want %s", text, told, want)
		}
	}
}

func FuzzDecodeTouched(f *testing.F) {
	f.Add([]byte(`{"node":1,"lines":4096,"dram":[5,4100]}`))
	f.Add([]byte(`{"node":1,"lines":4096,"dram":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseTouched(text)
		if err != nil && (got.Node != 0 || got.Lines != 0 || got.DRAM != nil) {
			t.Errorf("error with a value: %+v", got)
		}
	})
}

func TestDecodeCPIO(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("no cpio: the archive cannot be read back by another program")
	}
	var archive bytes.Buffer
	if err := writeCPIO(&archive, []guestFile{{"/bin/x", 0o755, []byte("abc")}, {"/etc/a/b", 0o644, nil}}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cpio", "-itv", "--quiet")
	cmd.Stdin = &archive
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	for _, want := range []string{"-rwxr-xr-x", " 3 ", "bin/x", "etc/a/b"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add([]byte(`{"id":1,"op":"run","argv":["true"]}`))
	f.Add([]byte(`{"id":1,"data":"AAAA","mode":420}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := parseFrame(line)
		if err != nil && (got.ID != 0 || got.Op != "" || got.Done) {
			t.Errorf("error with a value: %+v", got)
		}
	})
}
