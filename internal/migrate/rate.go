// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	"homenode/internal/unit"
)

// ParseRate reads "200MB/s", "1.5 GiB/s" or "max", which gives 0: no limit.
func ParseRate(text string) (unit.Bytes, error) {
	const want = "want such as 200MB/s or 1.5GiB/s, or max for no limit"
	trimmed := strings.TrimSpace(text)
	if trimmed == "max" {
		return 0, nil
	}
	amount, ok := strings.CutSuffix(trimmed, "/s")
	if !ok {
		return 0, fmt.Errorf("--rate %q: it is not per second: %s", text, want)
	}
	if strings.TrimLeft(amount, "0123456789. ") == "" { // a bare number
		return 0, fmt.Errorf("--rate %q: it has no unit: %s", text, want)
	}
	b, err := unit.ParseBytes(amount)
	switch {
	case strings.HasPrefix(amount, "-"):
		return 0, fmt.Errorf("--rate %q: it cannot be negative: %s", text, want)
	case err != nil:
		return 0, fmt.Errorf("--rate: %w: %s", err, want)
	case b <= 0:
		return 0, fmt.Errorf("--rate %q: nothing would ever be moved: %s", text, want)
	}
	return b, nil
}
