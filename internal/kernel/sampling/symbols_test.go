// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
			table, err := readSymbols(f)
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

// fileOffset uses readelf, which is not our code: symbol value → segment → offset.
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
	table, err := readSymbols(f)
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := table.Function(0x1800); ok {
		t.Errorf("a stripped program has a function %q", name)
	}
}

// A crafted file whose 20,000 symbols are all parts of one long name.
func TestNamesAreNotCopied(t *testing.T) {
	const symbols, names = 20000, 64 << 10
	var body bytes.Buffer
	write := func(v any) {
		if err := binary.Write(&body, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	write(elf.Header64{Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64, Ehsize: 64, Phentsize: 56, Shentsize: 64, Shnum: 4, Shstrndx: 3})
	at := uint64(64 + 4*64)
	write(elf.Section64{})
	write(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: at, Size: names})
	write(elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: at + names, Size: symbols * elf.Sym64Size, Entsize: elf.Sym64Size, Link: 1})
	write(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: at + names - 1, Size: 1})
	write(append(bytes.Repeat([]byte{'x'}, names-1), 0))
	for i := range symbols {
		write(elf.Sym64{Name: uint32(i), Info: uint8(elf.STT_FUNC), Shndx: 1, Value: uint64(i), Size: 1})
	}
	write(elf.Sym64{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	table, err := readSymbols(bytes.NewReader(body.Bytes()))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 || table.Bytes() > 4<<20 {
		t.Errorf("%d bytes were allocated, %d kept", took, table.Bytes())
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	if exe, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(exe[:min(len(exe), 4096)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := readSymbols(bytes.NewReader(data))
		if err != nil && table != nil {
			t.Error("a table beside an error")
		}
		if table != nil {
			table.Function(uint64(len(data)))
		}
	})
}
