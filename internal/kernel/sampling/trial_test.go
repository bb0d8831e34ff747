// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"testing"

	sys "golang.org/x/sys/unix"
)

func TestTry(t *testing.T) {
	f := newFake()
	f.refuse = func(attr *sys.PerfEventAttr, cpu int) error {
		if attr.Config == Lab().Stores.Config {
			return sys.ENOENT
		}
		if cpu != 2 || attr.Sample != trialPeriod {
			t.Errorf("%+v on CPU %d", attr, cpu)
		}
		return nil
	}
	if loads, stores := Try(f, Lab(), 2); loads != nil || !errors.Is(stores, sys.ENOENT) || len(f.attrs) != 1 || len(f.open) != 0 {
		t.Errorf("%v, %v: %d opened, %d left open", loads, stores, len(f.attrs), len(f.open))
	}
}
