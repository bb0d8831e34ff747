// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"homenode/internal/unit"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return "none"
	}
	return string(text)
}

func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "log")
	f, err := OpenFile(FileOptions{Path: path, Max: 10, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := fmt.Fprintf(f, "%d---\n", i); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	for name, want := range map[string]string{path: "6---\n7---\n", path + ".1": "4---\n5---\n", path + ".2": "2---\n3---\n", path + ".3": "none"} {
		if got := read(t, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// After a file that a crash cut off, the next line begins on a line of its own.
func TestRotateAfterCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\nha"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(FileOptions{Path: path, Max: unit.MiB})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "two\n")
	fmt.Fprint(f, "three\n")
	if got := read(t, path); got != "one\nha\ntwo\nthree\n" {
		t.Errorf("%q", got)
	}
}

// Each file has its head, and a fresh file keeps the old one beside it.
func TestRotateHead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rec")
	o := FileOptions{Path: path, Max: 12, Keep: 1, Fresh: true, Head: func(w io.Writer) error { _, err := io.WriteString(w, "head\n"); return err }}
	for range 2 {
		f, err := OpenFile(o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			fmt.Fprintf(f, "%d..\n", i)
		}
		f.Close()
	}
	if a, b := read(t, path), read(t, path+".1"); !strings.HasPrefix(a, "head\n") || !strings.HasPrefix(b, "head\n") || a != "head\n2..\n" {
		t.Errorf("%q %q", a, b)
	}
}

// A file without its head is useless: nothing is written until the head is written.
func TestRotateHeadFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rec")
	full := true
	f, err := OpenFile(FileOptions{Path: path, Max: 100, Head: func(w io.Writer) error {
		if full {
			_, err := io.WriteString(w, "he")
			return errors.Join(err, syscall.ENOSPC)
		}
		_, err := io.WriteString(w, "head\n")
		return err
	}})
	if err == nil {
		t.Error("the failed head was not an error")
	}
	if _, err := fmt.Fprint(f, "0\n"); err == nil {
		t.Error("a line was written without a head")
	}
	full = false
	for i := 1; i < 3; i++ {
		if _, err := fmt.Fprintln(f, i); err != nil {
			t.Error(err)
		}
	}
	if got := read(t, path); got != "head\n1\n2\n" {
		t.Errorf("%q", got)
	}
	f.Close()
}

// A full disk is an error each time, and no half of a line stays.
func TestRotateFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	f := &File{o: FileOptions{Path: "full", Max: 1000}}
	var err error
	if f.f, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := fmt.Fprint(f, "line\n"); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%v", err)
		}
	}
	if f.size != 0 || f.torn {
		t.Errorf("the size is believed to be %d bytes", f.size)
	}
	if _, err := OpenFile(FileOptions{Path: "/dev/null/x"}); err == nil {
		t.Error("an impossible folder was accepted")
	}
}
