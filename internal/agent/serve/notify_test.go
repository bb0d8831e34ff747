// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestSend(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notify("READY=1"); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	path := filepath.Join(t.TempDir(), "n")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := notify("READY=1"); err == nil {
		t.Error("no process listens, and Send returned no error")
	}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skipf("no unix socket here: %v", err)
	}
	defer l.Close()
	if err := notify("RELOADING=1", "MONOTONIC_USEC=5"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, err := l.Read(buf); err != nil || string(buf[:n]) != "RELOADING=1\nMONOTONIC_USEC=5" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
	}{{"", "", 0}, {"30000000", "", 7500 * time.Millisecond}, {"600000000", "", 10 * time.Second}, {"1", "", time.Microsecond}, {"2000000", strconv.Itoa(os.Getpid()), 500 * time.Millisecond}, {"2000000", "1", 0}, {"x", "", 0}, {"-5", "", 0}} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got := watchdog(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
