// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"
	"path"
	"time"

	"connectrpc.com/connect"

	"homenode/internal/unit"
	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

// Orders are what the fleet side asks of this host, until a time. They are not kept across a
// restart.
type Orders struct {
	Version  string
	Until    time.Time
	Services map[string]ServiceOrder
	Excluded []string // patterns of the paths of cgroups
}

// ServiceOrder is what is asked for a service that a rule of this host names.
type ServiceOrder struct {
	Approved bool
	Target   unit.Opt[unit.Ratio]
}

const (
	mostOrdered = 10_000
	// mostAhead bounds how long orders hold: a hub that is never heard of again must not
	// decide for ever.
	mostAhead = 8 * 24 * time.Hour
)

// Orders are those in force now. An Outbox that is nil has none.
func (o *Outbox) Orders() (*Orders, bool) {
	if o == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.inForce(o.clock.Now())
}

func (o *Outbox) inForce(now time.Time) (*Orders, bool) {
	if o.orders == nil || !now.Before(o.orders.Until) {
		return nil, false
	}
	return o.orders, true
}

// pull asks for the orders. A hub whose orders cannot be read is not away: the last ones
// hold until they end.
func (o *Outbox) pull(ctx context.Context) error {
	client, err := o.hub()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	m, err := client.Orders(ctx, &wirepb.OrdersRequest{})
	if connect.CodeOf(err) == connect.CodeFailedPrecondition && err != nil {
		o.log.Warn("hub: no new orders", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	o.follow(m)
	return nil
}

func (o *Outbox) follow(m *wirepb.OrdersResponse) {
	next, err := readOrders(m, o.clock.Now())
	if err != nil {
		o.log.Warn("hub: its orders are not followed", "error", err)
		return
	}
	o.mu.Lock()
	before := o.orders
	o.orders = next
	o.mu.Unlock()
	if version(before) != version(next) {
		o.log.Info("hub: orders", "version", version(next), "before", version(before))
	}
}

func version(o *Orders) string {
	if o == nil {
		return ""
	}
	return o.Version
}

// readOrders refuses all of them if a part cannot be read: a pattern that is left out could
// be what keeps a workload safe.
func readOrders(m *wirepb.OrdersResponse, now time.Time) (*Orders, error) {
	if m.Version == "" {
		return nil, nil
	}
	o := &Orders{Version: m.Version[:min(len(m.Version), 64)], Until: time.Unix(0, m.ExpiresNs), Services: map[string]ServiceOrder{}}
	if latest := now.Add(mostAhead); o.Until.After(latest) {
		o.Until = latest
	}
	if len(m.Services) > mostOrdered || len(m.Excluded) > mostOrdered {
		return nil, fmt.Errorf("more than %d services or patterns", mostOrdered)
	}
	for _, s := range m.Services {
		x := ServiceOrder{Approved: s.Approved}
		if s.TargetRatio != nil {
			if !unit.Ratio(*s.TargetRatio).Valid() {
				return nil, fmt.Errorf("service %q: target %v: want 0 to 1", s.Service, *s.TargetRatio)
			}
			x.Target = unit.Some(unit.Ratio(*s.TargetRatio))
		}
		o.Services[string(s.Service)] = x
	}
	for _, p := range m.Excluded {
		if _, err := path.Match(string(p), "/"); err != nil || len(p) > wire.MostName {
			return nil, fmt.Errorf("%q is not a pattern", p)
		}
		o.Excluded = append(o.Excluded, string(p))
	}
	return o, nil
}

// Excludes says that a pattern of the orders matches a workload.
func (o *Orders) Excludes(workload string) bool {
	for _, p := range o.Excluded {
		if ok, _ := path.Match(p, workload); ok {
			return true
		}
	}
	return false
}
