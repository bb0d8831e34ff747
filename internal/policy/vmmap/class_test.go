// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"testing"

	"homenode/internal/unit"
)

func TestClassOf(t *testing.T) {
	none, some := unit.None[float64](), unit.Some[float64]
	yes, no, unknown := unit.Some(true), unit.Some(false), unit.None[bool]()
	for _, c := range []struct {
		s         Slowdowns
		class     Class
		sensitive unit.Opt[bool]
	}{
		{Slowdowns{some(0), some(0), some(0)}, Sheep, no},
		{Slowdowns{some(0.09), some(0.09), some(0.1)}, Sheep, yes},
		{Slowdowns{some(0.1), some(0), some(0)}, Rabbit, no},
		{Slowdowns{some(0.4), some(0.3), some(0.5)}, Rabbit, yes}, // both: the larger one decides
		{Slowdowns{some(0.3), some(0.3), none}, Rabbit, unknown},
		{Slowdowns{some(0.3), some(0.4), some(0.2)}, Devil, yes},
		{Slowdowns{some(-0.01), some(0.1), some(-0.01)}, Devil, no}, // a little faster: noise
		{Slowdowns{none, some(0.4), some(0.2)}, Unknown, yes},
		{Slowdowns{some(0.4), none, none}, Unknown, unknown},
		{Slowdowns{}, Unknown, unknown},
	} {
		class, sensitive := ClassOf(c.s)
		if class != c.class || sensitive != c.sensitive {
			t.Errorf("%+v: %q %v, want %q %v", c.s, class, sensitive, c.class, c.sensitive)
		}
	}
}
