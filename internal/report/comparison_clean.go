// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// cleanComparison returns c with every text safe to show. Each face escapes the markup of its own
// language.
func cleanComparison(c experiment.Comparison) experiment.Comparison {
	c = render.Cleaned(c)
	nameArms(c.Arms)
	if c.Long != nil {
		nameArms(c.Long.Arms)
	}
	return c
}

// nameArms gives every arm a title, in place.
func nameArms(arms []experiment.Arm) {
	for i := range arms {
		arms[i].Title = render.Or(arms[i].Title, arms[i].Name)
		arms[i].Why = strings.TrimPrefix(arms[i].Why, "not applicable: ")
	}
}
