// SPDX-License-Identifier: Apache-2.0

package kerneltest

import (
	"errors"
	"strings"
	"testing"
)

// The fake keeps the rules that the lab's resctrl keeps (internal/lab TestLabResctrl).
func TestResctrlKeepsRules(t *testing.T) {
	f := NewResctrl()
	f.Start(1)
	for _, r := range ResctrlRules {
		var err error
		switch r.Op {
		case "make":
			err = f.Make(r.Name)
		case "remove":
			err = f.Remove(r.Name)
		case "write":
			err = f.Write(r.Name, r.Text)
		}
		said, _ := f.Read("info/last_cmd_status")
		if ok := err == nil && r.Errno == 0 || r.Errno != 0 && errors.Is(err, r.Errno); !ok || strings.TrimSpace(string(said)) != r.Says {
			t.Errorf("%s %s %q: %v, %q; want %v, %q", r.Op, r.Name, r.Text, err, said, r.Errno, r.Says)
		}
	}
	if f.Group(1) != "" || len(f.Groups()) != 0 {
		t.Errorf("left: thread 1 in %q, groups %v", f.Group(1), f.Groups())
	}
}
