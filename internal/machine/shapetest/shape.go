// SPDX-License-Identifier: Apache-2.0

package shapetest

import (
	"os"
	"path/filepath"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
)

// Shape reads a shape of the lab by its name.
func Shape(t testing.TB, name string) machine.Shape {
	t.Helper()
	file := filepath.Join(machinetest.Root(t), "lab/shapes", name+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := machine.ParseShape(data, file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
