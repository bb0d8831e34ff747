// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/lab/model"
)

// fakeQEMU is the output of this program when it plays QEMU (TestMain): a hello; or, for
// "slow", a clock that runs slowly for ever; or, for "stands", no clock.
const fakeQEMU = "HOMENODE_FAKE_QEMU"

func playQEMU(says string, args []string) int {
	fmt.Println("QEMU says")
	socket, shared := "", ""
	for _, arg := range args {
		if rest, ok := strings.CutPrefix(arg, "socket,id=port,path="); ok {
			socket, _, _ = strings.Cut(rest, ",")
		}
		if path, ok := strings.CutPrefix(arg, "file:"); ok {
			_ = os.WriteFile(path, []byte("\x1bc console\n"), 0o644)
		}
		if _, rest, ok := strings.Cut(arg, "mem-path="); ok {
			shared, _, _ = strings.Cut(rest, ",")
		}
	}
	switch says {
	case "stands":
		time.Sleep(time.Hour) // ended by Boot
	case "slow":
		playClock(shared)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	port, err := l.Accept()
	if err != nil {
		return 1
	}
	_, _ = port.Write([]byte(says + "\n"))
	_ = readFrames(port, func(f frame) bool { return f.Op != "stop" })
	return 0
}

// playClock is a guest whose clock advances 100 ms each time it is read.
func playClock(shared string) {
	f, err := os.OpenFile(shared, os.O_RDWR, 0)
	if err != nil {
		return
	}
	for cycles := uint64(0); ; cycles += 5_000_000 {
		for off, v := range map[int64]uint64{model.OffMagic: model.Magic, model.OffMHz: 50, model.OffCycles: cycles} {
			_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), off)
		}
		time.Sleep(lookEvery)
	}
}

// The output of a guest during its boot is reported, and so is a guest that never
// answers.
func TestDecisionBoot(t *testing.T) {
	for _, c := range []struct{ about, says, note, fail string }{
		{"it answers", `{"op":"hello"}`, "", ""},
		{"with a note", `{"op":"hello","line":"flat"}`, "flat", ""},
		{"unfit", `{"op":"hello","err":"wrong"}`, "", "boot lab two: wrong;"},
		{"never, by its own clock", "slow", "", `no port: context deadline exceeded: 1s of the guest's clock have passed; console ends with "\x1bc console", qemu.log with "QEMU says"`},
	} {
		t.Run(c.about, func(t *testing.T) {
			t.Setenv(fakeQEMU, c.says)
			g, err := Boot(context.Background(), fakeOptions(t))
			note, fail := "", ""
			if err == nil {
				note = g.Note
				g.Close()
			} else {
				fail = err.Error()
			}
			if note != c.note || !strings.Contains(fail, c.fail) || (fail != "") != (c.fail != "") {
				t.Errorf("note %q, error %q; want %q, %q", note, fail, c.note, c.fail)
			}
		})
	}
}

// A guest whose clock stands still is dead; a slow guest is waited for.
func TestDecisionWatch(t *testing.T) {
	g := &Guest{Dir: t.TempDir()}
	shared := filepath.Join(g.Dir, sharedName)
	if err := os.WriteFile(shared, make([]byte, 2048), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.watch(t.Context(), time.Hour, 500*time.Millisecond); !errors.Is(err, ErrStands) {
		t.Errorf("no clock: %v, want %v", err, ErrStands)
	}
	go playClock(shared)
	if err := g.watch(t.Context(), 2*time.Second, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a running clock: %v, want the limit", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.watch(ctx, time.Hour, time.Hour); err != nil {
		t.Errorf("ended by its caller: %v", err)
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
	return Options{Shape: shapeNamed(t, "two"), Assets: Assets{QEMU: exe, Initramfs: empty}, Bin: bin, Timeout: time.Second}
}
