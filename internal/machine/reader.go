// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// ErrMalformed marks a file with text that the kernel would not write.
var ErrMalformed = errors.New("malformed")

// tree reads files and collects errors. A missing file is no error. Each open costs
// some 20 µs below an os.Root, so known values are not read again.
type tree struct {
	fsys   fs.FS
	online set.CPUSet
	errs   []error

	listed bool              // cpu/online lists the online CPUs
	served map[string]string // which of several names of a file this kernel uses
	noDies bool
	splits unit.Opt[bool] // see splitsThreads
	leaves map[int]leaf   // by cache index, of the first CPU that had it
	asked  bool           // a CPU's caches were read

	bridged map[string][]string // see recordedBridges
}

// read returns a file's text without the newline and NULs around it.
func (t *tree) read(path string) (string, bool) {
	data, err := fs.ReadFile(t.fsys, path)
	if err != nil {
		t.failed("read", path, err)
		return "", false
	}
	return trim(string(data)), true
}

// headBytes is enough for the first CPU of /proc/cpuinfo, which a live kernel
// with many CPUs takes milliseconds to print.
const headBytes = 4096

// readHead returns the file's first headBytes.
func (t *tree) readHead(path string) (string, bool) {
	f, err := t.fsys.Open(path)
	if err != nil {
		t.failed("read", path, err)
		return "", false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, headBytes))
	if err != nil {
		t.failed("read", path, err)
		return "", false
	}
	return string(data), true
}

// names lists a directory, sorted; nil when it is missing or cannot be read.
func (t *tree) names(dir string) []string {
	entries, err := fs.ReadDir(t.fsys, dir)
	if err != nil {
		t.failed("read", dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// link returns where a symbolic link points to; false when there is none, or the
// path is no link.
func (t *tree) link(path string) (string, bool) {
	target, err := fs.ReadLink(t.fsys, path)
	return target, err == nil
}

// ids lists the directory's entries prefix0, prefix1, … A recorded tree may
// hold a link where sysfs has a directory; both count.
func (t *tree) ids(dir, prefix string) []int {
	return numbered(t.names(dir), prefix)
}

// numbered returns the numbers of the names prefix0, prefix1, …, ascending.
func numbered(names []string, prefix string) []int {
	var ids []int
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if id, err := strconv.Atoi(digits); ok && err == nil && isDigits(digits) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// failed notes an error unless it only says that there is no such file.
func (t *tree) failed(verb, path string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.errs = append(t.errs, fmt.Errorf("%s %s: %w", verb, path, err))
	}
}

// load reads a file and parses it: None when it is missing or malformed (which is
// noted).
func load[T any](t *tree, path string, parse func(string) (T, error)) unit.Opt[T] {
	text, ok := t.read(path)
	if !ok {
		return unit.None[T]()
	}
	v, err := parse(text)
	if err != nil {
		t.malformed(path, err)
		return unit.None[T]()
	}
	return unit.Some(v)
}

// malformed notes text that a kernel does not write.
func (t *tree) malformed(path string, err error) {
	if err != nil {
		t.failed("parse", path, fmt.Errorf("%w: %w", ErrMalformed, err))
	}
}

// cpuList loads the first of these files that exists: a list, or, if its name does not
// say "list", a mask.
func (t *tree) cpuList(paths ...string) unit.Opt[set.CPUSet] {
	for _, path := range paths {
		parse := parseCPUMap
		if strings.HasSuffix(path, "list") || strings.HasSuffix(path, "online") {
			parse = parseCPUList
		}
		if cpus := load(t, path, parse); cpus.Known() {
			return cpus
		}
	}
	return unit.None[set.CPUSet]()
}

// parseID reads a file of one decimal number such as topology/core_id.
// -1, the kernel's "I do not know", is None.
func parseID(text string) (unit.Opt[int], error) {
	if text == "-1" {
		return unit.None[int](), nil
	}
	if !isDigits(text) {
		return unit.None[int](), fieldError(1, 1, text)
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return unit.None[int](), fieldError(1, 1, text)
	}
	return unit.Some(int(n)), nil
}

// id loads such a file.
func (t *tree) id(path string) unit.Opt[int] {
	return load(t, path, parseID).Or(unit.None[int]())
}

func fieldError(line, field int, text string) error {
	return fmt.Errorf("line %d, field %d %s: invalid syntax", line, field, clip(text))
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func trim(s string) string { return strings.Trim(s, " \t\r\n\x00") }

// clip quotes text for an error message, at most 40 bytes of it.
func clip(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "…"
	}
	return strconv.Quote(s)
}
