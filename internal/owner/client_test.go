// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

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

// late is a daemon that answers each request, just in time.
type late struct{ asked *int }

func (l late) RoundTrip(*http.Request) (*http.Response, error) {
	*l.asked++
	time.Sleep(AnswerLimit - 100*time.Millisecond)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A daemon that answers each of a round's requests just in time does not hold the round
// for minutes: it is left alone for a while. Answers that are not late never count.
func TestLateEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := NewClient(Daemon{Name: "Docker", Unit: "docker", Socket: "/x", MaxAnswer: 1}, &http.Transport{})
		asked, began := 0, time.Now()
		client.HTTP.Transport = late{&asked}
		var err error
		for range 150 { // 50 containers
			if _, _, err = client.Send(http.MethodGet, "/", nil, nil); err != nil && err.Error() !=
				"reach Docker at /x: no answer soon enough: its last answers took 30s together: it is asked again in a moment" {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > lateInAll+2*AnswerLimit || !errors.Is(err, journal.ErrNoAnswer) || asked < 5 {
			t.Errorf("%d requests took %v: %v", asked, took, err)
		}
		time.Sleep(quiet + time.Second)
		if _, _, err = client.Send(http.MethodGet, "/", nil, nil); err != nil {
			t.Errorf("later: %v", err)
		}
		for b := (Backoff{}); ; time.Sleep(time.Millisecond) {
			if b.took(lateAnswer - 1); b.Lasts() {
				t.Fatal("answers in time count")
			}
			if time.Since(began) > time.Hour {
				break
			}
			time.Sleep(lateAnswer)
		}
	})
}
