// SPDX-License-Identifier: Apache-2.0

package unix

import "testing"

func TestForgetProgram(t *testing.T) {
	for range 3 { // everything goes on
		if err := ForgetProgram(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProgramRange(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-0114d000 r-xp 00000000 fe:00 1234 /usr/bin/homenode\n": true,
		"0114d000-01e1f000 r--p 00d4d000 fe:00 1234 /usr/bin/homenode\n": true,
		"01e1f000-01f67000 rw-p 01a1f000 fe:00 1234 /usr/bin/homenode\n": false,
		"7fff0000-7fff1000 r-xp 00000000 00:00 0 [vdso]\n":               false,
		"7f000000-7f001000 r--s 00000000 00:05 9 /dev/shm/x\n":           false,
		"58b91800000-58b92400000 r--p 00000000 00:00 0 \n":               false,
		"x-y r--p 00000000 fe:00 1 /a\n":                                 false,
		"":                                                               false,
	} {
		if _, _, ok := programRange(line); ok != want {
			t.Errorf("%q: %v", line, ok)
		}
	}
}
