// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// Daemon is a manager that listens on a unix socket, and what to do when reaching it
// fails.
type Daemon struct {
	Name      string // "Docker"
	Unit      string // its systemd unit: "docker"
	Socket    string
	Denied    string // what to do where the socket may not be opened
	Absent    string // what to do where no process listens on it
	MaxAnswer int64  // bytes: far more than an answer has
}

// Client speaks HTTP with a Daemon. It does not interpret the status.
type Client struct {
	Daemon
	HTTP    http.Client
	Limit   time.Duration // of one call
	Backoff Backoff

	mu   sync.Mutex
	conn net.Conn // the last one; nil: none
}

// mostHeaders of an answer, in bytes. gRPC has its result there, with a message: a runtime's
// are some hundred bytes long.
const mostHeaders = 64 << 10

// NewClient makes a Client with the transport t, except for the address. It does not
// connect yet.
func NewClient(d Daemon, t *http.Transport) *Client {
	c := &Client{Daemon: d, HTTP: http.Client{Transport: t}, Limit: AnswerLimit}
	t.DialContext = c.dial
	t.IdleConnTimeout, t.DisableCompression, t.MaxResponseHeaderBytes = 30*time.Second, true, mostHeaders
	return c
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conn = conn
	}
	return conn, err
}

// hangUp closes the connection on which no answer came. The transport would keep it, and
// hang on it for ever if the daemon writes and does not read.
func (c *Client) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Persist sends a request, and repeats it once if there was no connection: that a daemon
// was restarted shows only at the first use. So a request may be sent twice. If it
// changes something, it is unknown whether the first one was done.
func (c *Client) Persist(changes bool, ask func() error) error {
	err := ask()
	if unreached := (*unreachedError)(nil); !errors.As(err, &unreached) {
		return err
	}
	c.HTTP.CloseIdleConnections()
	if err = ask(); err != nil && changes {
		return fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
	}
	return err
}

// Send is one request. The body of the response has been read, and the trailers are
// there.
func (c *Client) Send(method, path string, header http.Header, body []byte) (*http.Response, []byte, error) {
	if c.Backoff.Lasts() {
		return nil, nil, fmt.Errorf("reach %s at %s: %w %s: it is asked again in a moment", c.Name, c.Socket, journal.ErrNoAnswer, c.Backoff.why(c.Limit))
	}
	began := time.Now()
	defer func() { c.Backoff.took(time.Since(began)) }()
	ctx, cancel := context.WithTimeout(context.Background(), c.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.Unit+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s for %s: %w", c.Name, path, err)
	}
	req.Header = header
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, nil, c.unreached(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.MaxAnswer+1))
	if err != nil {
		return nil, nil, c.unreached(err)
	}
	if int64(len(data)) > c.MaxAnswer { // it may have done what it was asked for
		return nil, nil, fmt.Errorf("read the answer of %s at %s: it has more than %d bytes (%w; %w): look at 'systemctl status %s' if that lasts", c.Name, c.Socket, c.MaxAnswer, kernel.ErrMalformed, journal.ErrNoAnswer, c.Unit)
	}
	return resp, data, nil
}

// unreached says what to do where there was no answer.
func (c *Client) unreached(err error) error {
	c.hangUp()
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("reach %s at %s: %w: %s", c.Name, c.Socket, kernel.ErrNotPermitted, c.Denied)
	case os.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		c.Backoff.Begin()
		return fmt.Errorf("reach %s at %s: %w within %s: it is asked again; look at 'systemctl status %s' if that lasts", c.Name, c.Socket, journal.ErrNoAnswer, c.Limit, c.Unit)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // "connect: no such file or directory"
	}
	return &unreachedError{fmt.Sprintf("reach %s at %s: %s: %s", c.Name, c.Socket, err, c.Absent)}
}

// unreachedError is the error of a connection that was refused, or ended.
type unreachedError struct{ text string }

func (e *unreachedError) Error() string { return e.text }
func (e *unreachedError) Unwrap() error { return journal.ErrNoAnswer }
