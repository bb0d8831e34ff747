// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

const (
	// callLimit is longer than a hub waits for its store.
	callLimit = 80 * time.Second
	// Back-off after failures: doubled, with jitter, from the first to the longest.
	firstWait, longestWait = time.Second, 5 * time.Minute
	ordersEvery            = time.Minute
	renewEvery             = time.Hour // how often the certificate's age is looked at
)

// send is the one sender: the oldest entries first, until there are none; then it waits for
// more, or until the orders are due.
func (o *Outbox) send(ctx context.Context) {
	var orders, renewal time.Time // when each is due
	failures := 0
	for ctx.Err() == nil {
		now := o.clock.Now()
		due := !now.Before(orders)
		idle, ordered, err := o.sendNext(ctx, due)
		if err == nil && due {
			orders = now.Add(ordersEvery)
			if !ordered {
				err = o.pull(ctx)
			}
		}
		if err == nil && !now.Before(renewal) {
			renewal = now.Add(renewEvery)
			o.renewIfDue(ctx, now)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failures++
			o.failed(err, failures)
			o.clock.Sleep(ctx, waitAfter(err, failures), nil)
			continue
		}
		if failures > 0 {
			o.log.Info("hub: it answers again", "address", o.c.Address)
		}
		failures = 0
		o.note(func(s *Status) { s.Error = "" })
		if idle {
			o.clock.Sleep(ctx, orders.Sub(o.clock.Now()), o.more)
		}
	}
}

func (o *Outbox) failed(err error, failures int) {
	err = explained(err)
	if failures == 1 {
		o.log.Warn("hub: what is seen waits in the spool", "address", o.c.Address, "error", err)
	}
	if connect.CodeOf(err) == connect.CodeUnauthenticated && o.idle != nil {
		o.idle.CloseIdleConnections() // the next connection has the certificate that is in the file by then
	}
	o.note(func(s *Status) { s.Error = err.Error() })
}

// explained says what a hub can mean by the refusal of a certificate in the handshake. On a connection
// that it had accepted before, it gives the reason itself.
func explained(err error) error {
	if !strings.Contains(err.Error(), "tls: bad certificate") {
		return err
	}
	return fmt.Errorf("the hub refuses this host's certificate, which is revoked, expired or another hub's: enrol the host again: %w", err)
}

// waitAfter doubles, and asks no sooner than the hub says.
func waitAfter(err error, failures int) time.Duration {
	d := min(firstWait<<min(failures-1, 16), longestWait)
	d = d/2 + rand.N(d/2)
	var e *connect.Error
	if errors.As(err, &e) {
		if s, bad := strconv.Atoi(e.Meta().Get("Retry-After")); bad == nil && s > 0 {
			d = max(d, min(time.Duration(s)*time.Second, longestWait))
		}
	}
	return d
}

// hub is the client. It is made when the files that it needs are there.
func (o *Outbox) hub() (wirepb.HubClient, error) {
	if o.client == nil {
		client, idle, err := o.dial()
		if err != nil {
			return nil, err
		}
		o.client, o.idle = client, idle
	}
	return o.client, nil
}

// sendNext sends the oldest entries. idle: there were none. ordered: the answer had the orders
// that were asked for, which saves a request.
func (o *Outbox) sendNext(ctx context.Context, orders bool) (idle, ordered bool, err error) {
	all, err := o.spool.Next(wire.MostSendBatches, wire.MostSend/2)
	if err != nil || len(all) == 0 {
		return true, false, err
	}
	client, err := o.hub()
	if err != nil {
		return false, false, err
	}
	r := &wirepb.SendRequest{Orders: orders}
	for _, e := range all {
		r.Batches = append(r.Batches, e.Packed)
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	answer, err := client.Send(ctx, r)
	if err != nil {
		return false, false, err
	}
	if ordered = orders && answer.Orders != nil; ordered {
		o.follow(answer.Orders)
	}
	return false, ordered, o.settle(all, answer)
}

func (o *Outbox) settle(all []Entry, answer *wirepb.SendResponse) error {
	n := int(answer.Settled)
	if n > len(all) || len(answer.Refused) > n {
		return fmt.Errorf("the hub settled %d of %d batches", n, len(all))
	}
	if n > 0 {
		o.spool.Done(all[n-1].Seq)
	}
	for _, x := range answer.Refused {
		o.spool.Drop(DropRefused, 1)
		o.log.Warn("hub: a batch was refused", "reason", x.Reason, "detail", x.Detail)
	}
	o.note(func(s *Status) {
		if sent := n - len(answer.Refused); sent > 0 {
			s.Sent, s.LastSent = s.Sent+uint64(sent), o.clock.Now().Round(0)
		}
		for _, x := range answer.Refused {
			s.RefusedWhy = x.Reason + ": " + x.Detail
		}
	})
	if n < len(all) {
		return fmt.Errorf("the hub does not take more for now: %s", answer.Later)
	}
	return nil
}

// renewIfDue only logs: the certificate is good for some time yet.
func (o *Outbox) renewIfDue(ctx context.Context, now time.Time) {
	c, err := o.certificate()
	if err == nil && !now.Before(renewAt(c)) {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		var client wirepb.HubClient
		if client, err = o.hub(); err == nil {
			err = renew(ctx, client, o.c)
		}
		if err == nil {
			o.log.Info("hub: this host's certificate is renewed")
			if o.idle != nil {
				o.idle.CloseIdleConnections() // the next connection has the new one
			}
			c, err = o.certificate()
		}
	}
	if err != nil {
		o.log.Warn("hub: this host's certificate", "error", err)
		return
	}
	o.note(func(s *Status) { s.Certificate = c.NotAfter })
}
