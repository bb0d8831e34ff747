// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// A name in an error is shown, but the terminal does not obey it.
func TestErrorsArePrintable(t *testing.T) {
	var out bytes.Buffer
	err := errors.Join(errors.New("process 7 (\x1b[31mEVIL) has no memory"), errors.New("which of /a/\u202ex\rhomenode: all is well"))
	if code := Finish("homenode", exit.BadInput(err), &out); code != exit.Bad {
		t.Errorf("exit code %d", code)
	}
	if want := "homenode: process 7 (\uFFFD[31mEVIL) has no memory\nwhich of /a/\uFFFDx homenode: all is well\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
	out.Reset()
	if Tell(&out, []string{"still bound: /\x1b]0;EVIL\a"}); out.String() != "homenode: still bound: /\uFFFD]0;EVIL\uFFFD\n" {
		t.Errorf("got %q", out.String())
	}
}

// A missing precondition or permission ends a command with exit code 2.
func TestPreconditions(t *testing.T) {
	for _, err := range []error{journal.ErrLocked, kernel.ErrNotSupported, kernel.ErrNotPermitted, fs.ErrPermission} {
		var out bytes.Buffer
		if code := Finish("homenode", exit.Precondition(fmt.Errorf("open journal: %w", err)), &out); code != exit.Bad || !strings.Contains(out.String(), err.Error()) {
			t.Errorf("%v: exit %d, %s", err, code, out.String())
		}
	}
	if code := Finish("homenode", exit.Precondition(errors.New("other")), io.Discard); code == exit.Bad || code == 0 {
		t.Errorf("another error: exit %d", code)
	}
}
