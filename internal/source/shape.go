// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/lab/shapes"
)

// maxShape is some fifty times what the largest of the lab's takes, bytes.
const maxShape = 64 << 10

// Shape takes a shape's name or a path to a file. Names are of the folder, or of the
// shapes that are part of the program where that is "".
func Shape(folder, name string) (machine.Shape, error) {
	file, read := name, readShape
	switch {
	case strings.ContainsAny(name, "/."):
	case folder == "":
		read = func(string) ([]byte, error) { return shapes.Read(name) }
	default:
		file = filepath.Join(folder, name+".yaml")
	}
	s, err := parseShape(file, read)
	switch {
	case !errors.Is(err, os.ErrNotExist):
		return s, err
	case folder == "":
		return s, exit.BadInput(fmt.Errorf("unknown shape %q: want a file, or one of %s", name, strings.Join(shapes.Names(), ", ")))
	}
	return s, exit.BadInput(fmt.Errorf("unknown shape %q: no file %s; 'homenode-lab shapes' lists them", name, file))
}

func readShape(file string) ([]byte, error) { return unix.ReadAtMost(file, maxShape) }

func parseShape(file string, read func(string) ([]byte, error)) (machine.Shape, error) {
	data, err := read(file)
	if err != nil {
		return machine.Shape{}, exit.BadInput(fmt.Errorf("read shape: %w", err))
	}
	s, err := machine.ParseShape(data, file)
	return s, exit.BadInput(err)
}
