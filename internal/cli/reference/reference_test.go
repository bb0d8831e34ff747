// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"testing"
	"time"
)

// Manual pages have the commit's date, or none that depends on the build.
func TestPagesDay(t *testing.T) {
	for epoch, want := range map[string]string{"": "1970-01-01T00:00:00Z", "1764000000": "2025-11-24T16:00:00Z", "yesterday": ""} {
		day, err := pagesDay(epoch)
		if (want == "") != (err != nil) || err == nil && day.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v; want %q", epoch, day, err, want)
		}
	}
}
