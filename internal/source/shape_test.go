// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
)

// A shape is a file that a person names: what has more than a shape takes is not read whole.
func TestShapeIsBounded(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#", maxShape+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{large, "/dev/zero"} {
		_, err := Shape("", file)
		if code := (exit.Error{}); !errors.Is(err, unix.ErrTooLarge) || !errors.As(err, &code) || code.Code != exit.Bad || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if s, err := Shape("", "../../lab/shapes/two.yaml"); err != nil || s.Name != "two" {
		t.Errorf("%+v, %v", s, err)
	}
}
