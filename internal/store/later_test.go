// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// counted is a store that counts what it is asked.
type counted struct {
	Store
	adds, closes int
}

func (c *counted) Add(context.Context, []Batch) (int, error) { c.adds++; return 1, nil }

func (c *counted) Close() error { c.closes++; return nil }

// A server that does not answer is tried again, not at every call, and nothing is taken
// meanwhile.
func TestLater(t *testing.T) {
	now, tries, away := time.Unix(0, 0), 0, true
	var behind counted
	l := NewLater(func(ctx context.Context) (Store, error) {
		tries++
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("an attempt may last for ever")
		}
		if away {
			return nil, errors.New("connection refused")
		}
		return &behind, nil
	}, func() time.Time { return now })
	busy := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", what, err)
		}
	}
	busy("try", l.Try(t.Context()))
	_, err := l.Add(t.Context(), nil)
	busy("add", err)
	_, err = l.Ask(t.Context(), Question{})
	busy("ask", err)
	_, err = l.SQL(t.Context(), "", 1)
	busy("SQL", err)
	busy("maintain", l.Maintain(t.Context(), now, Usual))
	busy("export", l.Export(t.Context(), nil, now, now))
	if tries != 1 {
		t.Errorf("tried %d times at one moment", tries)
	}
	away, now = false, now.Add(4*time.Second)
	_, err = l.Add(t.Context(), nil)
	busy("too soon", err)
	now = now.Add(2 * time.Second)
	for range 2 {
		if added, err := l.Add(t.Context(), nil); added != 1 || err != nil {
			t.Errorf("%d, %v", added, err)
		}
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil || tries != 2 || behind.adds != 2 || behind.closes != 1 {
		t.Errorf("%v, %d tries, %+v", err, tries, behind)
	}
	if _, err := l.Add(t.Context(), nil); !errors.Is(err, ErrBusy) || tries != 2 {
		t.Errorf("after the end: %v, %d tries", err, tries)
	}
}
