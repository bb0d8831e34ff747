// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Later is a store on another machine, which need not be there when this program starts. It is
// opened when it is first needed. While that fails, everything fails with ErrBusy and the
// reason, and it is tried at most every few seconds.
type Later struct {
	open  func(context.Context) (Store, error)
	every time.Duration
	now   func() time.Time

	mu     sync.Mutex
	store  Store
	failed error
	tried  time.Time
	closed bool
}

var _ Store = (*Later)(nil)

// openLimit is how long one attempt to open a store may take.
const openLimit = 20 * time.Second

// NewLater is a store that open opens. now is the clock.
func NewLater(open func(context.Context) (Store, error), now func() time.Time) *Later {
	return &Later{open: open, every: 5 * time.Second, now: now}
}

// Try opens the store now, if it is not open.
func (l *Later) Try(ctx context.Context) error {
	_, err := l.get(ctx)
	return err
}

// get opens the store if need be. Callers wait for one attempt together.
func (l *Later) get(ctx context.Context) (Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, fmt.Errorf("%w: it is closed", ErrBusy)
	case l.store != nil:
		return l.store, nil
	case l.failed != nil && l.now().Sub(l.tried) < l.every:
		return nil, l.failed
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	s, err := l.open(ctx)
	if err != nil {
		l.failed, l.tried = fmt.Errorf("%w: %w", ErrBusy, err), l.now()
		return nil, l.failed
	}
	l.store, l.failed = s, nil
	return s, nil
}

// Add implements Store.
func (l *Later) Add(ctx context.Context, batches []Batch) (int, error) {
	s, err := l.get(ctx)
	if err != nil {
		return 0, err
	}
	return s.Add(ctx, batches)
}

// Ask implements Store.
func (l *Later) Ask(ctx context.Context, q Question) (Table, error) {
	s, err := l.get(ctx)
	if err != nil {
		return Table{}, err
	}
	return s.Ask(ctx, q)
}

// SQL implements Store.
func (l *Later) SQL(ctx context.Context, query string, most int) (Table, error) {
	s, err := l.get(ctx)
	if err != nil {
		return Table{}, err
	}
	return s.SQL(ctx, query, most)
}

// Maintain implements Store.
func (l *Later) Maintain(ctx context.Context, now time.Time, keep Retention) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Maintain(ctx, now, keep)
}

// Export implements Store.
func (l *Later) Export(ctx context.Context, to io.Writer, from, until time.Time) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Export(ctx, to, from, until)
}

// Close closes the store if it was opened. It is not opened again.
func (l *Later) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.store == nil {
		return nil
	}
	err := l.store.Close()
	l.store = nil
	return err
}
