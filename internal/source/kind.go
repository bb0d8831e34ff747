// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"homenode/internal/kernel/unix"
)

// headBytes is how much of a file tells what it is.
const headBytes = 64 << 10

// kinds are the files that homenode writes: the names that each has at its top level, and
// the command that reads it.
var kinds = []struct {
	keys []string
	hint string
}{
	{[]string{"schema", "kind", "period_ns"}, "it is a recording of windows: 'homenode top --replay FILE' shows it, 'homenode replay FILE' repeats its decisions, and 'homenode dump FILE' writes CSV"},
	{[]string{"schema", "at", "length_ns", "machine", "window"}, "it is a snapshot: 'homenode doctor --snapshot FILE' reads it"},
	{[]string{"schema", "machine", "origin", "used_cpus"}, "it is a profile: 'homenode bench show FILE' shows it"},
	{[]string{"schema", "pid", "dry_run", "started"}, "it is an agent's status: 'homenode status --state FOLDER' shows it"},
	{[]string{"schema", "at", "seq", "action", "kind"}, "it is a decision log: 'homenode why --decisions FILE WORKLOAD' reads it"},
}

const savedMachine = "it is a saved machine: 'homenode topo --root FILE' shows it"

// Explain adds to an error on a file what the file is, and which command reads it, if it is
// one of homenode's.
func Explain(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if hint := kindOf(head(path)); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// head is the beginning of a file, unzipped; nothing if it cannot be read.
func head(path string) []byte {
	f, err := unix.OpenNamed(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, headBytes)) // a part tells as much
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	data, _ = io.ReadAll(io.LimitReader(z, headBytes)) // cut off, as the file was
	return data
}

// kindOf says what begins so; "" is none of homenode's files.
func kindOf(data []byte) string {
	const tarMagic = 257 // of ustar, and of GNU's tar
	if len(data) > tarMagic+5 && string(data[tarMagic:tarMagic+5]) == "ustar" {
		return savedMachine
	}
	keys := topLevel(data)
	for _, k := range kinds {
		if !slices.ContainsFunc(k.keys, func(key string) bool { return !slices.Contains(keys, key) }) {
			return k.hint
		}
	}
	return ""
}

// topLevel are the names of the first JSON object, as far as it is there.
func topLevel(data []byte) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return keys
		}
		keys = append(keys, name)
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return keys
		}
	}
	return keys
}
