// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// From its first moment on, an agent does not end on SIGHUP: the signal waits
// for the loop.
func TestHangupWaits(t *testing.T) {
	hangup := Hangups()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hangup:
	case <-time.After(5 * time.Second):
		t.Error("no SIGHUP arrived")
	}
}

func TestStatusBytes(t *testing.T) {
	text := []byte("Name:\thomenode\nVmHWM:\t   12 kB\nRssAnon:\tmany kB\n")
	if n, err := statusBytes(text, "VmHWM"); n != 12<<10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, name := range []string{"RssAnon", "RssFile"} {
		if n, err := statusBytes(text, name); n != 0 || err == nil {
			t.Errorf("%s: %d without an error", name, n)
		}
	}
}
