// SPDX-License-Identifier: Apache-2.0

package event

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:embed tables/*.json
var files embed.FS

// Names are those of all tables, in order.
var Names = sync.OnceValue(func() []string {
	entries, err := fs.ReadDir(files, "tables")
	if err != nil {
		panic(fmt.Sprintf("event: %v", err))
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
})

// parsed tables by name. Each is read at its first use, as most programs need one or two.
// A table is part of the program, so one that cannot be read is a broken invariant.
var parsed sync.Map

func read(file string) *Table {
	data, err := files.ReadFile("tables/" + file)
	if err != nil {
		panic(fmt.Sprintf("event: %v", err))
	}
	t, err := Parse(file, data)
	if err == nil && t.Name+".json" != file {
		err = fmt.Errorf("table %q is in %s", t.Name, file)
	}
	if err != nil {
		panic(fmt.Sprintf("event: %v", err))
	}
	return &t
}

// ByName finds a table.
func ByName(name string) (*Table, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	t, ok := parsed.Load(name)
	if !ok {
		t, _ = parsed.LoadOrStore(name, read(name+".json"))
	}
	return t.(*Table), true
}

// All are the tables, by name.
func All() []*Table {
	all := make([]*Table, 0, len(Names()))
	for _, name := range Names() {
		t, _ := ByName(name)
		all = append(all, t)
	}
	return all
}

// GenericName is the table for CPUs without a table of their own.
const GenericName = "generic"

// For is the table of a CPU: the one that takes it, otherwise the generic one. The lab's
// PMU has precedence over what its CPU reports.
func For(c CPU) *Table {
	var found *Table
	for _, t := range All() {
		for _, m := range t.CPUs {
			if m.Takes(c) && (found == nil || m.Identifier != "") {
				found = t
			}
		}
	}
	if found == nil {
		found, _ = ByName(GenericName)
	}
	return found
}

// Describe is "GenuineIntel family 6 model 0x55 stepping 4", for people.
func (c CPU) Describe() string {
	var parts []string
	switch {
	case c.Mixed:
		parts = append(parts, "CPUs of several kinds")
	case c.Vendor != "":
		parts = append(parts, fmt.Sprintf("%s family %d model %#02x stepping %d", c.Vendor, c.Family, c.Model, c.Stepping))
	case c.Implementer != 0:
		parts = append(parts, fmt.Sprintf("implementer %#x part %#x", c.Implementer, c.Part))
	case c.PVR != 0:
		parts = append(parts, fmt.Sprintf("PVR %#04x", c.PVR))
	default:
		parts = append(parts, "a CPU that does not say what it is")
	}
	if c.Identifier != "" {
		parts = append(parts, "PMU "+c.Identifier)
	}
	return strings.Join(parts, ", ")
}
