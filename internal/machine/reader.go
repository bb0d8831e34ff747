// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// ErrMalformed marks a file whose text the kernel would not write.
var ErrMalformed = errors.New("malformed")

// tree reads files and collects what went wrong. A missing file is no error.
type tree struct {
	fsys   fs.FS
	online set.CPUSet
	errs   []error
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

// ids lists the directory's entries prefix0, prefix1, … A recorded tree may
// hold a link where sysfs has a directory; both count.
func (t *tree) ids(dir, prefix string) []int {
	entries, err := fs.ReadDir(t.fsys, dir)
	if err != nil {
		t.failed("read", dir, err)
	}
	var ids []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		if id, err := strconv.Atoi(digits); ok && err == nil && isDigits(digits) {
			ids = append(ids, id)
		}
	}
	return ids
}

// failed notes an error unless it only says that there is no such file.
func (t *tree) failed(verb, path string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.errs = append(t.errs, fmt.Errorf("%s %s: %w", verb, path, err))
	}
}

// load reads a file and parses it: None when it is missing, or malformed (noted).
func load[T any](t *tree, path string, parse func(string) (T, error)) unit.Opt[T] {
	text, ok := t.read(path)
	if !ok {
		return unit.None[T]()
	}
	v, err := parse(text)
	if err != nil {
		t.failed("parse", path, fmt.Errorf("%w: %w", ErrMalformed, err))
		return unit.None[T]()
	}
	return unit.Some(v)
}

// cpuList loads the first of these files that exists: a list, or, where its
// name does not say "list", a mask.
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
