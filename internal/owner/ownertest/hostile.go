// SPDX-License-Identifier: Apache-2.0

package ownertest

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/owner"
)

// HostileAnswers are what a daemon that is broken, or hostile, answers to a request. Each
// holds for HTTP/1 and HTTP/2.
var HostileAnswers = map[string]http.HandlerFunc{
	"never": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"a byte at a time, for ever": func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	},
	"zeros without end": func(w http.ResponseWriter, r *http.Request) { pour(w, make([]byte, 16<<10)) },
	"braces without end": func(w http.ResponseWriter, r *http.Request) {
		pour(w, []byte(strings.Repeat(`{"Id":`, 4<<10)))
	},
	"nothing":        func(http.ResponseWriter, *http.Request) {},
	"an end at once": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"an end halfway": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	},
	"headers of 2 MiB": func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Grpc-Message", "X-A", "X-B", "X-C"} {
			w.Header().Set(name, strings.Repeat("h", 512<<10))
		}
	},
	"a page": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html>" + strings.Repeat("\x1b[2J", 1000)))
	},
	"null": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("null")) },
}

// pour writes until it cannot.
func pour(w io.Writer, data []byte) {
	for {
		if _, err := w.Write(data); err != nil {
			return
		}
	}
}

// HostileConns are what a daemon does with a connection, whatever it is asked.
var HostileConns = map[string]func(net.Conn){
	"silent": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	"closed": func(net.Conn) {},
	"zeros":  func(c net.Conn) { pour(c, make([]byte, 64<<10)) },
	"a header of HTTP/1 without end": func(c net.Conn) {
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nX: "))
		pour(c, []byte(strings.Repeat("x", 64<<10)))
	},
	"1xx answers without end":        func(c net.Conn) { pour(c, []byte(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000))) },
	"settings of HTTP/2 without end": func(c net.Conn) { pour(c, frames("\x00\x00\x00\x04\x00\x00\x00\x00\x00")) },
	"pings of HTTP/2 without end":    func(c net.Conn) { pour(c, frames("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678")) },
	"a frame of 16 MiB": func(c net.Conn) {
		_, _ = c.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\x00\x00\x00\x00\x00\x01"))
		pour(c, make([]byte, 64<<10))
	},
	"headers of HTTP/2 that never end": func(c net.Conn) {
		_, _ = c.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x01\x88"))
		pour(c, frames("\x00\x00\x09\x09\x00\x00\x00\x00\x01\x00\x01a\x04bbbbb")) // CONTINUATION: a: bbbb
	},
}

func frames(one string) []byte { return []byte(strings.Repeat(one, 1000)) }

// ServeHostile accepts connections on a socket and does this with each of them. Its result
// ends it, and waits until the client has closed all of them.
func ServeHostile(t *testing.T, socket string, do func(net.Conn)) (end func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			do(c) // one after the other: a client has one connection at a time
			c.Close()
		}
	}()
	return func() {
		l.Close()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the client still reads from a connection on which no answer came")
		}
	}
}

// hostileLimit is how long the client waits for an answer in these tests.
const hostileLimit = 500 * time.Millisecond

// mostForAnAnswer bounds what is allocated during one step beside a hostile daemon, both
// sides counted.
const mostForAnAnswer = 48 << 20

// Beside takes a step beside a hostile daemon: it is not done, it ends, it does not take
// much memory, and its message has no control characters.
func Beside(t *testing.T, c *owner.Client, j *journal.Journal, o journal.Owner, step action.Step) {
	t.Helper()
	c.Backoff, c.Limit = owner.Backoff{}, hostileLimit
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := j.Wrap(o).Apply(t.Context(), step)
	runtime.ReadMemStats(&after)
	if out.Status == action.Done || out.Detail == "" || strings.ContainsAny(out.Detail, "\x1b\n") || len(out.Detail) > 2000 {
		t.Errorf("%s: %.3000q", out.Status, out.Detail)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > mostForAnAnswer {
		t.Errorf("it took %d bytes of memory", took)
	}
	t.Logf("%s: %s", out.Status, out.Detail)
	c.Backoff, c.Limit = owner.Backoff{}, owner.AnswerLimit
}
