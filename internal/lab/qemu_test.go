// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/unit"
)

// HOMENODE_QEMU names the program, by its path or by a name in PATH.
func TestDecisionWhichQEMU(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	own, other := filepath.Join(dir, "qemu-system-x86_64"), filepath.Join(dir, "qemu10")
	for named, want := range map[string]string{"": "or name it in HOMENODE_QEMU", other: "find the QEMU that HOMENODE_QEMU names"} {
		t.Setenv(qemuEnv, named)
		if got, err := findQEMU(); !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), want) {
			t.Errorf("HOMENODE_QEMU=%s, and nothing there: %q, %v; want %q", named, got, err, want)
		}
	}
	for _, path := range []string{own, other} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for named, want := range map[string]string{"": own, other: other, "qemu10": other} {
		t.Setenv(qemuEnv, named)
		if got, err := findQEMU(); got != want || err != nil {
			t.Errorf("HOMENODE_QEMU=%s: %q, %v; want %s", named, got, err, want)
		}
	}
}

// QEMU 10 reports addresses with a hole in them for a shape so large. 7.2 does not.
func TestLabRefusesMemoryAboveHole(t *testing.T) {
	if testing.Short() || os.Getenv(qemuEnv) == "" {
		t.Skip("-short, or no HOMENODE_QEMU: QEMU 7.2 boots such a shape")
	}
	o := labOptionsFor(t, "four", "v2")
	o.Shape.Nodes[0].Memory = 2 * unit.GiB
	refused(t, o, "its nodes have 3.5 GiB or more, some of it above 4 GiB: use QEMU 7.2, or smaller nodes")
}

func refused(t *testing.T, o Options, want string) {
	t.Helper()
	g, err := Boot(t.Context(), o)
	if err == nil {
		g.Close()
		t.Fatal("it booted")
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("refused with %v, want %q", err, want)
	}
}

// A QEMU whose symbols or code the plugin does not know is refused, with a message.
func TestLabRefusesOtherQEMU(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	for _, c := range []struct {
		about  string
		change func(*testing.T, []byte)
		want   string
	}{
		{"without the symbols", hideSymbol, "it does not export cpus_get_accel: use QEMU 7.2 or 10.0"},
		{"with other code", skipTable, "its table of operations is not where it was in the versions known: use QEMU 7.2 or 10.0"},
	} {
		t.Run(c.about, func(t *testing.T) {
			o := labOptionsFor(t, "two", "v2")
			o.Assets.QEMU = changedQEMU(t, o.Assets.QEMU, c.change)
			refused(t, o, "homenode lab plugin: take over the clock of this QEMU: "+c.want)
		})
	}
}

func changedQEMU(t *testing.T, path string, change func(*testing.T, []byte)) string {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(program, []byte(elf.ELFMAG)) {
		t.Skipf("%s is a script: there is no code in it to change", path)
	}
	change(t, program)
	// Debian's accelerator is a module, which a program in another folder does
	// not find.
	t.Setenv("QEMU_MODULE_DIR", filepath.Join(filepath.Dir(path), "../lib/x86_64-linux-gnu/qemu"))
	other := filepath.Join(t.TempDir(), "qemu")
	if err := os.WriteFile(other, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return other
}

// hideSymbol gives a function another name: QEMU itself calls it by address.
func hideSymbol(t *testing.T, program []byte) {
	t.Helper()
	name, other := []byte("\x00cpus_get_accel\x00"), []byte("\x00cpus_got_accel\x00")
	at := bytes.Index(program, name)
	if at < 0 {
		t.Fatal("QEMU does not export cpus_get_accel")
	}
	copy(program[at:], other)
}

// skipTable makes a function jump to its end, where it works without the table.
func skipTable(t *testing.T, program []byte) {
	t.Helper()
	code := functionOf(t, program, "cpus_get_virtual_clock")
	end := len(code) - 5 // a jump with a displacement of 4 bytes
	if end < 2 || end > 127 || code[end] != 0xe9 {
		t.Fatalf("the function's code is not as expected: % x", code)
	}
	for i := range code[:end] {
		code[i] = 0x90 // no operation
	}
	code[0], code[1] = 0xeb, byte(end-2)
}

func functionOf(t *testing.T, program []byte, name string) []byte {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name != name {
			continue
		}
		section := file.Sections[s.Section]
		at := s.Value - section.Addr + section.Offset
		return program[at : at+s.Size]
	}
	t.Fatalf("QEMU does not export %s", name)
	return nil
}
