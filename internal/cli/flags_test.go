// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

// A refusal of arguments says which there were.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "want a file, got none"},
		{[]string{"a", "b"}, `want a file, got 2 arguments: ["a" "b"]`},
	} {
		if err := Exactly(1, "a file")(nil, c.args); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
	if err := Exactly(0, "no arguments")(nil, []string{"x"}); err == nil || err.Error() != `want no arguments, got "x"` {
		t.Errorf("%v", err)
	}
	if err := AtLeast(2, "two files")(nil, []string{"x"}); err == nil || err.Error() != `want two files, got "x"` {
		t.Errorf("%v", err)
	}
}
