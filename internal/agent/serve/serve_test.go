// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
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

// A port that another process has ends an agent, with what to do. A dry run says so once,
// and goes on.
func TestListenMetrics(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	first, err := listenMetrics("127.0.0.1:0", true, log)
	if err != nil || first == nil || text.Len() > 0 {
		t.Fatalf("a free port in a dry run: %v, %v, %s", first, err, text.String())
	}
	defer first.Close()
	taken := first.Addr().String()
	if l, err := listenMetrics(taken, true, log); l != nil || err != nil || strings.Count(text.String(), "no metrics on metrics.listen") != 1 {
		t.Errorf("a dry run: %v, %v, %s", l, err, text.String())
	}
	if l, err := listenMetrics(taken, false, log); l != nil || !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "a dry run of homenode") {
		t.Errorf("an agent: %v, %v", l, err)
	}
	for _, dry := range []bool{true, false} {
		if l, err := listenMetrics("", dry, log); l != nil || err != nil {
			t.Errorf("none configured: %v, %v", l, err)
		}
	}
	var none net.Listener
	if l, err := listenMetrics("127.0.0.1:nothing", false, log); l != none || err == nil || strings.Contains(err.Error(), "dry run") {
		t.Errorf("no port: %v, %v", l, err)
	}
}
