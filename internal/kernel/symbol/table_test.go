// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const program = `
int twice(int x) { return 2 * x; }
__attribute__((noinline)) int thrice(int x) { return 3 * x; }
int main(int argc, char **argv) { (void)argv; return twice(argc) + thrice(argc); }
`

// build compiles the program and returns its path and the address of a symbol in it.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("gcc", append([]string{"-O0", "-o", out, src}, flags...)...).CombinedOutput(); err != nil {
		t.Skipf("gcc: %v\n%s", err, text)
	}
	return out
}

func TestFunctionOfProgram(t *testing.T) {
	for _, flags := range [][]string{{"-pie"}, {"-no-pie"}, {"-static"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			path := build(t, flags...)
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			table, err := Read(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"twice", "thrice", "main"} {
				off := fileOffset(t, path, name)
				if got, ok := table.Function(off + 3); !ok || got != name {
					t.Errorf("offset %#x: %q, %v; want %q", off+3, got, ok, name)
				}
			}
			if got, ok := table.Function(1 << 40); ok {
				t.Errorf("beyond the file: %q", got)
			}
		})
	}
}

// fileOffset asks readelf, which is no code of ours: symbol value → segment → offset.
func fileOffset(t *testing.T, path, name string) uint64 {
	t.Helper()
	hex := func(s string) uint64 {
		v, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
		return v
	}
	out, err := exec.Command("readelf", "-sWl", path).Output()
	if err != nil {
		t.Skipf("readelf: %v", err)
	}
	var addr uint64
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) == 8 && f[7] == name && f[3] == "FUNC" {
			addr = hex(f[1])
		}
	}
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) > 5 && f[0] == "LOAD" && addr >= hex(f[2]) && addr < hex(f[2])+hex(f[4]) {
			return addr - hex(f[2]) + hex(f[1])
		}
	}
	t.Fatalf("readelf knows no segment of %s", name)
	return 0
}

func TestStrippedProgramHasNoFunction(t *testing.T) {
	f, err := os.Open(build(t, "-static", "-s"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := table.Function(0x1800); ok {
		t.Errorf("a stripped program has a function %q", name)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	if exe, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(exe[:min(len(exe), 4096)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Read(bytes.NewReader(data))
		if err != nil && table != nil {
			t.Error("a table beside an error")
		}
		if table != nil {
			table.Function(uint64(len(data)))
		}
	})
}
