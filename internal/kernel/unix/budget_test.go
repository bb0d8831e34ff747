// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"
)

// A reading ends where its budget does, and takes no more memory than a line.
func TestBudget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "maps")
	line := strings.Repeat("x", 4000) + "\n"
	if err := os.WriteFile(path, bytes.Repeat([]byte(line), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	round := NewBudget(3<<20, time.Minute)
	for _, c := range []struct {
		b    *Budget
		want string // "": it is read
	}{
		{nil, ""},
		{NewBudget(8<<20, time.Minute), ""},
		{NewBudget(1<<20, time.Minute), "more than 1048576 bytes"},
		{NewBudget(8<<20, -time.Second), "longer than"},
		{round.Within(2<<20, time.Minute), "more than 2097152 bytes"},
		{round.Within(8<<20, time.Minute), "more than 3145728 bytes"}, // together
	} {
		var buf Buffer
		lines := 0
		err := buf.Lines(path, "maps", c.b, func(int, []byte) error { lines++; return nil })
		if c.want == "" && (err != nil || lines != 1000) {
			t.Errorf("%d lines, %v", lines, err)
		}
		if c.want != "" && (!errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), c.want) || lines == 1000) {
			t.Errorf("%s: %d lines, %v", c.want, lines, err)
		}
		if len(buf.b) > 4*maxLine {
			t.Errorf("%d bytes of buffer", len(buf.b))
		}
	}
}

// A buffer that read a large file does not keep its memory for the next small one.
func TestBufferShrinks(t *testing.T) {
	dir := t.TempDir()
	large, small := filepath.Join(dir, "large"), filepath.Join(dir, "small")
	for path, size := range map[string]int{large: 8 << 20, small: 1} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var buf Buffer
	for _, path := range []string{large, small} {
		if _, err := buf.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(buf.b) > mostKept {
		t.Errorf("%d bytes are kept", len(buf.b))
	}
}

func TestReadAtMost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadAtMost(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	for _, file := range []string{path, "/dev/zero"} {
		data, err := ReadAtMost(file, 4)
		if !errors.Is(err, ErrTooLarge) || data != nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
}

// A FIFO does not stop the reader, whether or not a process has it open for writing. One
// that is written to is read: 'topo --from-hwloc <(lstopo --of xml)'.
func TestFIFOsDoNotStopTheReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := sys.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenNamed(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.(*named).patience = 10 * time.Millisecond
	if data, err := readAtMost(f, path, 9); err == nil || len(data) > 0 || !strings.Contains(err.Error(), "no process wrote to it within 10ms") {
		t.Errorf("no writer: %q, %v", data, err)
	}
	writer, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := readAtMost(f, path, 9); err == nil || len(data) > 0 || !strings.Contains(err.Error(), "no process wrote to it within 10ms") {
		t.Errorf("a silent writer: %q, %v", data, err)
	}
	if _, err := writer.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	go writer.Close()
	f.(*named).patience = pipePatience
	if data, err := readAtMost(f, path, 9); err != nil || string(data) != "text" {
		t.Errorf("a writer: %q, %v", data, err)
	}
}

func TestHead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cmdline")
	if err := os.WriteFile(path, bytes.Repeat([]byte("-x\x00"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var buf Buffer
	if data, err := buf.Head(path, 100); err != nil || len(data) != 100 || !bytes.HasPrefix(data, []byte("-x\x00-x")) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if data, err := buf.Head("/proc/self/comm", 100); err != nil || len(data) == 0 {
		t.Errorf("%q, %v", data, err)
	}
}
