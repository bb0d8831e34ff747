// SPDX-License-Identifier: Apache-2.0

// Package shapes has the machines that the lab can be, a file each. They are embedded
// in the programs, because an installed program has no checkout beside it.
package shapes

import (
	"embed"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names are the names of all shapes, in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// Read returns a shape's file. An error means that there is no such shape.
func Read(name string) ([]byte, error) { return files.ReadFile(name + ".yaml") }
