// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// failing is a transport that reaches no daemon.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// The error where there is no answer, what it wraps, and how often the request is sent.
func TestWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		err  error
		text string
		is   []error
		asks int
	}{
		{os.ErrPermission, "reach Docker at /x: " + kernel.ErrNotPermitted.Error() + ": be root", []error{kernel.ErrNotPermitted}, 1},
		{context.DeadlineExceeded, "reach Docker at /x: no answer within 5s: it is asked again; look at 'systemctl status docker' if that lasts", []error{journal.ErrNoAnswer}, 1},
		{&net.OpError{Op: "dial", Err: errors.New("connect: refused")}, "reach Docker at /x: connect: refused: start it (whether it is done is not known)", []error{journal.ErrNoAnswer, journal.ErrUnsure}, 2},
	} {
		client := NewClient(Daemon{Name: "Docker", Unit: "docker", Socket: "/x", Denied: "be root", Absent: "start it"}, &http.Transport{})
		client.HTTP.Transport = failing{c.err}
		asks := 0
		err := client.Persist(true, func() error {
			asks++
			_, _, err := client.Send(http.MethodGet, "/", nil, nil)
			return err
		})
		if err == nil || err.Error() != c.text || asks != c.asks {
			t.Errorf("%v: asked %d times: %v", c.err, asks, err)
		}
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%v is not %v", err, is)
			}
		}
		if errors.Is(c.err, context.DeadlineExceeded) {
			const silent = "reach Docker at /x: no answer within 5s just now: it is asked again in a moment"
			if _, _, err := client.Send(http.MethodGet, "/", nil, nil); err == nil || err.Error() != silent || !errors.Is(err, journal.ErrNoAnswer) {
				t.Errorf("right after: %v", err)
			}
		}
	}
}
