// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/action"
	"homenode/internal/window"
)

// blind is a world that cannot be read between two times.
type blind struct {
	*world
	from, to time.Duration
}

var errBlind = errors.New("read cgroups: too many open files")

func (b *blind) Read(ctx context.Context) (window.Window, error) {
	if at := time.Since(start); at >= b.from && at < b.to {
		return window.Window{}, errBlind
	}
	return b.world.Read(ctx)
}

// Without a window nothing is done and nothing is undone. Bindings stay, the health says
// why the agent is not ready, and failed rounds are counted. The first window that can
// be read is a long one. It is decided on like any other.
func TestRoundsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "period: 10s\ncalm_period: 10s\nservices: [{name: w, match: /w0, approved: true}]"
		a, w := served(t, &text)
		a.reader = &blind{world: w, from: 200 * time.Second, to: 500 * time.Second}
		var out bytes.Buffer
		a.o.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))
		run(t, a,
			func() { time.Sleep(195 * time.Second) },
			func() {
				if v, _ := a.View(); v.Status.Workloads[0].Nodes.IsEmpty() {
					t.Error("not bound")
				}
			},
			func() { time.Sleep(200 * time.Second) },
			func() {
				if h := a.Health(); !h.Alive || h.Ready || !strings.Contains(strings.Join(h.Why, " "), errBlind.Error()) {
					t.Errorf("%+v", h)
				}
			},
			func() { time.Sleep(200 * time.Second) },
			func() {
				v, _ := a.View()
				if h := a.Health(); !h.Ready || v.Status.Totals.FailedRounds < 25 || v.Status.Workloads[0].Nodes.IsEmpty() {
					t.Errorf("%+v, %+v", h, v.Status.Totals)
				}
			})
		restores, long := 0, time.Duration(0)
		for _, s := range w.steps {
			if s.Kind == action.Restore {
				restores++
			}
		}
		for _, win := range w.windows {
			long = max(long, win.Length)
		}
		if restores != 0 || long < 300*time.Second || strings.Count(out.String(), "too many open files") < 25 {
			t.Errorf("%d restores, the longest window %v, log %.300s", restores, long, out.String())
		}
	})
}

// A status that cannot be written is logged once and counted. The loop, the API and
// the end do not depend on it.
func TestStatusCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "period: 10s\ncalm_period: 10s\nservices: [{name: w, match: /w0, approved: true}]"
		a, w := served(t, &text)
		var out bytes.Buffer
		a.o.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
		dir := a.o.Config.StateDir
		run(t, a,
			func() { time.Sleep(50 * time.Second) },
			func() {
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			},
			func() { time.Sleep(100 * time.Second) },
			func() {
				if v, ok := a.View(); !ok || v.Status.Totals.FileErrors == 0 || w.seen() < 10 {
					t.Errorf("%d windows, %+v", w.seen(), v.Status.Totals)
				}
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Error(err)
				}
			},
			func() { time.Sleep(30 * time.Second) })
		if n := strings.Count(out.String(), `msg="status: the loop continues without it"`); n != 1 || !strings.Contains(out.String(), `msg="status: written again"`) {
			t.Errorf("logged %d times: %s", n, out.String())
		}
	})
}
