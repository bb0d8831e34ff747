// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// One boot in forty hung on a busy host before the kernel had printed anything, for two
// reasons: a vCPU whose thread was late did not keep the clock (homenode_clock_resume),
// and code that was changed while QEMU translated it ran for ever (lab/plugin/code.h).
// HOMENODE_BOOTS is the number of boots to try, four at a time, so that each has half a
// CPU of a host with two: every one must answer.
func TestLabBoots(t *testing.T) {
	t.Parallel()
	n, err := strconv.Atoi(os.Getenv("HOMENODE_BOOTS"))
	if err != nil {
		t.Skip("HOMENODE_BOOTS is not set to a number of boots: 'make test-full' sets it")
	}
	const atOnce = 4
	var left, hung atomic.Int64
	left.Store(int64(n))
	shapes := []string{"two", "four", "smt"}
	began := time.Now()
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				g, err := Boot(t.Context(), labOptionsFor(t, shapes[int(i)%len(shapes)], "v2"))
				if err != nil {
					hung.Add(1)
					t.Errorf("boot %d: %v", i, err)
					continue
				}
				g.Close()
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d boots answered, %d at a time, in %v", int64(n)-hung.Load(), n, atOnce, time.Since(began).Round(time.Second))
}

// Code that one CPU changes while another one translates it is translated again. Without
// that (lab/plugin/code.h) the first value is seen for ever within some ten rounds, and
// a kernel that patches its own code hangs.
func TestLabPatchedCode(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	if out := mustRun(t, g, "homenode-load", "patch", "20000"); !strings.Contains(out, `"stale":false`) {
		t.Errorf("a CPU never saw what another one wrote into its code: %s", out)
	}
}
