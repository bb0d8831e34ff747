// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"homenode/internal/store"
	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

// mostQueued is how many windows wait for the disk before the newest is dropped: the loop
// never waits.
const mostQueued = 32

// sendTogether is how many windows wait for each other: with windows of 10 s, as long as the
// orders.
const sendTogether = 6

// Outbox sends what an agent saw. It is safe for concurrent use.
type Outbox struct {
	c     Config
	log   *slog.Logger
	run   string
	queue chan queued
	spool *Spool
	more  chan struct{} // the spool has what is to be sent now
	saved atomic.Uint64
	clock Clock

	dial   func() (wirepb.HubClient, *http.Transport, error)
	client wirepb.HubClient
	idle   *http.Transport

	stop     context.CancelFunc
	ended    sync.WaitGroup
	patience time.Duration // of the end with the disk

	packing sync.Mutex // of the next two
	packer  wire.Packer
	number  uint64 // of the last batch in the queue

	mu     sync.Mutex
	status Status
	orders *Orders
}

// queued is a packed batch.
type queued struct {
	number uint64
	packed []byte
	urgent bool // it has a decision
}

// Clock is what the sender waits by. The zero value is the host's.
type Clock struct {
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration, wake <-chan struct{}) // until then, the context's end, or wake
}

func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	}
}

// Status is what an outbox has sent, and what it could not.
type Status struct {
	Address      string            `json:"address"`
	Sent         uint64            `json:"sent_batches"`
	LastSent     time.Time         `json:"last_sent,omitzero"`
	Waiting      uint64            `json:"waiting_batches"`
	WaitingBytes int64             `json:"waiting_bytes"`
	Dropped      map[string]uint64 `json:"dropped_batches,omitempty"` // by reason
	Error        string            `json:"error,omitempty"`           // why nothing is sent now
	Rests        string            `json:"rests,omitempty"`           // why nothing is to be sent: a dry run beside an agent
	Disk         string            `json:"spool_error,omitempty"`     // why the spool cannot be written
	RefusedWhy   string            `json:"last_refusal,omitempty"`    // what the hub refused last
	Certificate  time.Time         `json:"certificate_until,omitzero"`
	Orders       string            `json:"orders_version,omitempty"` // version in force
	OrdersUntil  time.Time         `json:"orders_until,omitzero"`
}

// New opens the spool and begins to send. Close ends that.
func New(c Config, log *slog.Logger, clock Clock) (*Outbox, error) {
	if clock.Now == nil {
		clock = Clock{time.Now, sleep}
	}
	return newOutbox(c, log, clock, nil)
}

func newOutbox(c Config, log *slog.Logger, clock Clock, dial func() (wirepb.HubClient, *http.Transport, error)) (*Outbox, error) {
	spool, err := OpenSpool(c.Spool, int64(c.Budget))
	if err != nil {
		return nil, err
	}
	o := &Outbox{c: c, log: log, run: rand.Text(), queue: make(chan queued, mostQueued), spool: spool, more: make(chan struct{}, 1), clock: clock, dial: dial, patience: closeLimit}
	if dial == nil {
		o.dial = func() (wirepb.HubClient, *http.Transport, error) { return newClient(c) }
	}
	o.status.Address = c.Address
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	o.ended.Go(o.keep)
	o.ended.Go(func() { o.send(ctx) })
	return o, nil
}

// Offer takes what a window showed, and never waits for the disk or the hub. Run and Number are
// set here, Host by the hub. It keeps nothing of the batch. An Outbox that is nil takes nothing.
func (o *Outbox) Offer(b store.Batch) {
	if o == nil {
		return
	}
	o.pack(b, func(q queued) bool {
		select {
		case o.queue <- q:
			return true
		default:
			o.spool.Drop(DropQueue, 1)
			return false
		}
	})
}

// Put is Offer for a caller that can wait: until there is room.
func (o *Outbox) Put(b store.Batch) {
	o.pack(b, func(q queued) bool { o.queue <- q; return true })
}

// pack is done by the caller: it takes less CPU time than handing over rows, of which nothing
// may be used again.
func (o *Outbox) pack(b store.Batch, put func(q queued) bool) {
	o.packing.Lock()
	defer o.packing.Unlock()
	b.Run, b.Number = o.run, o.number+1
	for _, part := range wire.Split(b) {
		packed, err := o.packer.Pack(part)
		if err != nil {
			o.log.Error("hub: a window is not sent", "error", err)
			o.spool.Drop(DropTooBig, 1)
			continue
		}
		if put(queued{part.Number, slices.Clone(packed), len(part.Decisions) > 0}) {
			o.number = part.Number
		}
	}
}

// closeLimit is how long the end waits for the disk.
const closeLimit = 10 * time.Second

// Close writes what was offered to the spool and ends. What is in the spool is sent by the
// next agent. A disk that does not answer does not hold up the end.
func (o *Outbox) Close() {
	if o == nil {
		return
	}
	close(o.queue)
	o.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.ended.Wait()
		o.spool.Close()
	}()
	sleep(context.Background(), o.patience, ended)
	select {
	case <-ended:
	default:
		o.log.Error("hub: the spool's disk does not answer: what waits for it is lost", "windows", len(o.queue)+1, "spool", o.c.Spool)
	}
}

// keep writes batches to the spool.
func (o *Outbox) keep() {
	failing, first := false, true
	for q := range o.queue {
		err := o.spool.Add(q.packed)
		if err != nil && !failing {
			o.log.Warn("hub: what is seen waits in memory", "error", err)
		} else if err == nil && failing {
			o.log.Info("hub: the spool is written again")
		}
		if failing = err != nil; !failing {
			o.saved.Store(q.number)
		}
		// A request costs more than what is in it, so windows go a minute at a time: with the
		// orders, or together. The first, and a decision, go at once.
		if first || q.urgent || o.spool.Status().Waiting >= sendTogether {
			select {
			case o.more <- struct{}{}:
			default:
			}
		}
		first = false
	}
}

// Saved is the number of the last batch that is in the spool: a crash loses none up to it.
func (o *Outbox) Saved() uint64 { return o.saved.Load() }

// Status is safe to ask for at any time.
func (o *Outbox) Status() Status {
	s := o.spool.Status()
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.status
	out.Waiting, out.WaitingBytes, out.Dropped, out.Disk = s.Waiting+uint64(len(o.queue)), s.Bytes, s.Dropped, s.Failing
	if p, ok := o.inForce(o.clock.Now()); ok {
		out.Orders, out.OrdersUntil = p.Version, p.Until
	}
	return out
}

func (o *Outbox) note(change func(s *Status)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.status)
}

// certificate is the host's own, as its file has it now.
func (o *Outbox) certificate() (*x509.Certificate, error) {
	pair, err := readPair(o.c)
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
}
