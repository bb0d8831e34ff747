// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"net"
	"os"
	ossignal "os/signal"
	"strings"
	"testing"
	"time"
)

// pipedGuest is a guest's server in this process.
func pipedGuest(t *testing.T) *Guest {
	t.Helper()
	host, guest := net.Pipe()
	t.Cleanup(func() { host.Close(); guest.Close() })
	g := &Guest{port: host, w: &wireWriter{w: host}, waiting: map[uint64]*call{}}
	hello := make(chan frame, 1)
	go g.receive(hello)
	go func() { _ = Serve(guest, t.TempDir()+"/disk", "", nil) }()
	<-hello
	return g
}

// An interrupted program gets the signal, and its output is not lost.
func TestInterruptedRunKeepsItsOutput(t *testing.T) { interruptedRun(t, pipedGuest(t)) }

// The same in QEMU.
func TestLabInterruptedRunKeepsItsOutput(t *testing.T) {
	t.Parallel()
	interruptedRun(t, guest(t, "two", "v2"))
}

func interruptedRun(t *testing.T, g *Guest) {
	t.Helper()
	// A shell cannot trap what it was started with as ignored, as 'make test &' has it.
	ossignal.Notify(make(chan os.Signal, 1), os.Interrupt)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := func(l string) {
		if l == "ready" {
			cancel()
		}
	}
	r, err := g.RunLines(ctx, ready, "sh", "-c", `trap 'echo put back; echo ended >&2; exit 3' INT; echo begun; echo ready >&2; while :; do sleep 0.05; done`)
	if err == nil || r.Stdout != "begun\nput back\n" || !strings.HasPrefix(r.Stderr, "ready\n") {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := g.Run(context.Background(), "echo", "next"); err != nil || r.Stdout != "next\n" {
		t.Errorf("the guest after it: %+v, %v", r, err)
	}
}

// A program that does not end is abandoned after a while; its output is kept.
func TestInterruptedRunThatStays(t *testing.T) {
	g := pipedGuest(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	r, err := g.RunLines(ctx, func(string) { cancel() }, "sh", "-c", `trap '' INT; echo begun; echo ready >&2; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done`)
	if took := time.Since(began); err == nil || r.Stdout != "begun\n" || took > 4*endPatience {
		t.Errorf("%+v, %v, after %v", r, err, took)
	}
}
