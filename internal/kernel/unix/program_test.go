// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"net"
	"os/user"
	"testing"
)

// The program keeps running, also when it is linked dynamically, as tests with os/user
// and net are.
func TestForgetProgram(t *testing.T) {
	for range 3 {
		if err := ForgetProgram(); err != nil {
			t.Fatal(err)
		}
		_, _ = user.Current()
		_, _ = net.LookupHost("localhost")
	}
}

func TestCleanMappings(t *testing.T) {
	clean, dirty := "Rss:  4 kB\nAnonymous:   0 kB\nSwap:   0 kB\n", "Rss:  4 kB\nAnonymous:   4 kB\nSwap:   0 kB\n"
	swapped := "Anonymous:   0 kB\nSwap:   4 kB\n"
	for text, want := range map[string]int{
		"00400000-0114d000 r-xp 00000000 fe:00 1234 /usr/bin/homenode\n" + clean:                         1,
		"0114d000-01e1f000 r--p 00d4d000 fe:00 1234 /usr/bin/homenode\n" + clean:                         1,
		"0114d000-01e1f000 r--p 00d4d000 fe:00 1234 /usr/bin/homenode\n" + dirty:                         0,
		"0114d000-01e1f000 r--p 00d4d000 fe:00 1234 /usr/bin/homenode\n" + swapped:                       0,
		"01e1f000-01f67000 rw-p 01a1f000 fe:00 1234 /usr/bin/homenode\n" + clean:                         0,
		"00400000-0114d000 r-xp 00000000 fe:00 1234 /usr/lib/libc.so.6\n" + clean:                        0,
		"7fff0000-7fff1000 r-xp 00000000 00:00 0 [vdso]\n" + clean:                                       0,
		"58b91800000-58b92400000 r--p 00000000 00:00 0 \n" + clean:                                       0,
		"0114d000-01e1f000 r--p 0 fe:00 1 /usr/bin/homenode\n" + dirty + "1-2 r--p 0 0:0 0 /x\n" + clean: 0,
		"x-y r--p 00000000 fe:00 1 /usr/bin/homenode\n" + clean:                                          0,
		"": 0,
	} {
		if got := cleanMappings(text, "/usr/bin/homenode"); len(got) != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzCleanMappings(f *testing.F) {
	f.Add("00400000-0114d000 r-xp 00000000 fe:00 1234 /a\nAnonymous: 0 kB\nSwap: 0 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range cleanMappings(text, "/a") {
			if m.start >= m.end {
				t.Fatalf("%q: %v", text, m)
			}
		}
	})
}
