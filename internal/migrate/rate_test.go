// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"

	"homenode/internal/unit"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]unit.Bytes{
		"max": 0, "200MB/s": 200e6, "500B/s": 500, "3kB/s": 3000, "1.5GB/s": 15e8, "2KiB/s": 2048, "1 MiB/s": unit.MiB, "1GiB/s": unit.GiB,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"max", "200MB/s", "-1B/s", "1.5 GiB/s", "/s", "200", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseRate(s)
		if err != nil && b != 0 || err == nil && b < 0 {
			t.Errorf("%q: %d, %v", s, b, err)
		}
	})
}
