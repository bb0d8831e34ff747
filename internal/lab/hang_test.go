// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeQEMU names a folder: this program then plays QEMU (TestMain), and a guest that
// says hello if the folder has a file for the try: try1, try2.
const fakeQEMU = "HOMENODE_FAKE_QEMU"

func playQEMU(dir string, args []string) int {
	try := 1
	for ; ; try++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint("was", try)), os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			f.Close()
			break
		}
	}
	fmt.Printf("try %d\n", try)
	socket := ""
	for _, arg := range args {
		if rest, ok := strings.CutPrefix(arg, "socket,id=port,path="); ok {
			socket, _, _ = strings.Cut(rest, ",")
		}
		if path, ok := strings.CutPrefix(arg, "file:"); ok {
			_ = os.WriteFile(path, fmt.Appendf(nil, "\x1bc console %d\n", try), 0o644)
		}
	}
	hello, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("try", try)))
	if err != nil {
		time.Sleep(time.Hour) // ended by Boot
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	port, err := l.Accept()
	if err != nil {
		return 1
	}
	_, _ = port.Write(append(hello, '\n'))
	_ = readFrames(port, func(f frame) bool { return f.Op != "stop" })
	return 0
}

// A guest that never answers is tried twice more, and what it said is not lost. One that
// answers that it is unfit is not.
func TestDecisionBootTwice(t *testing.T) {
	const hung = `no port: context deadline exceeded; console ends with "\x1bc console 1", qemu.log with "try 1"`
	for _, c := range []struct {
		about      string
		tries      []string // what the guest of each says; "" = nothing
		note, fail []string // parts
		booted     int
	}{
		{"at once", []string{`{"op":"hello"}`}, nil, nil, 1},
		{"the second time", []string{"", `{"op":"hello","line":"flat"}`}, []string{"flat; a try before hung: boot lab two: ", hung}, nil, 2},
		{"never", []string{"", "", ""}, nil, []string{hung, "a try before hung", `qemu.log with "try 3"`}, 3},
		{"unfit", []string{`{"op":"hello","err":"wrong"}`, `{"op":"hello"}`}, nil, []string{"boot lab two: wrong;"}, 1},
		{"hung, then unfit", []string{"", `{"op":"hello","err":"wrong"}`}, nil, []string{"boot lab two: wrong;", hung}, 2},
	} {
		t.Run(c.about, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(fakeQEMU, dir)
			for i, hello := range c.tries {
				if hello == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("try", i+1)), []byte(hello), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			g, err := Boot(context.Background(), fakeOptions(t))
			note, fail := "", ""
			if err == nil {
				note = g.Note
				g.Close()
			} else {
				fail = err.Error()
			}
			wantParts(t, "note", note, c.note)
			wantParts(t, "error", fail, c.fail)
			if tries, _ := filepath.Glob(filepath.Join(dir, "was*")); len(tries) != c.booted {
				t.Errorf("%d tries, want %d", len(tries), c.booted)
			}
		})
	}
}

func fakeOptions(t *testing.T) Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	empty := filepath.Join(bin, "empty")
	for _, name := range []string{empty, filepath.Join(bin, "homenode"), filepath.Join(bin, "homenode-lab")} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Options{Shape: shapeNamed(t, "two"), Assets: Assets{QEMU: exe, Initramfs: empty}, Bin: bin, Timeout: 8 * time.Second}
}

// wantParts wants every part in the text; none at all: no text.
func wantParts(t *testing.T, what, got string, parts []string) {
	t.Helper()
	if len(parts) == 0 && got != "" {
		t.Errorf("%s: %s, want none", what, got)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%s: %s, want %q in it", what, got, part)
		}
	}
}
