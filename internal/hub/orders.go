// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/wire/wirepb"
	"homenode/internal/yamlfile"
)

// ErrOrders is wrapped by every error about a file of orders.
var ErrOrders = errors.New("bad orders")

// Orders are what the fleet side asks of every host. Agents pull them; a host that has not
// heard of them for ValidFor follows its own policy.
type Orders struct {
	// How long a host follows the orders after it last pulled them, 1m to 168h.
	ValidFor time.Duration `yaml:"valid_for"`
	// Time from which there are no orders, such as 2026-12-31T00:00:00Z. Empty: none.
	Until string `yaml:"until"`
	// Services that the hosts' rules name.
	Services []ServiceOrder `yaml:"services"`
	// Patterns of the cgroups that are never bound.
	Excluded []string `yaml:"excluded"`

	until   time.Time
	version string
	names   map[string]bool
}

// ServiceOrder is what is asked for one service.
type ServiceOrder struct {
	// Name of the service. Required.
	Name string `yaml:"name"`
	// Binding pays.
	Approved bool `yaml:"approved"`
	// Local access ratio that it should have, 0 to 1. Empty: the host's rule has it.
	Target *float64 `yaml:"target_local_ratio"`
}

// mostOrders bounds the file, bytes; agents bound the number of services and patterns.
const (
	mostOrders    = 1 << 20
	mostOrdered   = 10_000
	mostInFile    = mostOrdered - 1000 // rollouts have the rest
	mostOrderText = 4096
)

// ReadOrders reads a file of orders.
func ReadOrders(file string) (Orders, error) {
	text, err := unix.ReadAtMost(file, mostOrders)
	if err != nil {
		return Orders{}, fmt.Errorf("read orders: %w", err)
	}
	return ParseOrders(text, file)
}

// ParseOrders refuses unknown keys, and what cannot be meant.
func ParseOrders(text []byte, file string) (Orders, error) {
	o := noOrders
	doc, err := yamlfile.Parse(text, file, yamlfile.Rules{Malformed: ErrOrders, What: "a file of orders", Most: mostOrders, MayBeEmpty: true})
	if err == nil {
		err = doc.Decode(&o)
	}
	if err != nil {
		return Orders{}, err
	}
	if at, why := o.check(); why != "" {
		return Orders{}, doc.Wrong(at, why)
	}
	o.version = versionOf(text)
	return o, nil
}

func (o *Orders) check() (at, why string) {
	if o.ValidFor < time.Minute || o.ValidFor > 7*24*time.Hour {
		return "valid_for", fmt.Sprintf("it is %v: want 1m to 168h", o.ValidFor)
	}
	if o.Until != "" {
		var err error
		if o.until, err = time.Parse(time.RFC3339, o.Until); err != nil {
			return "until", fmt.Sprintf("it is %q: want a time such as 2026-12-31T00:00:00Z", o.Until)
		}
	}
	if len(o.Services) > mostInFile || len(o.Excluded) > mostInFile {
		return "", fmt.Sprintf("it has more than %d services or patterns", mostInFile)
	}
	seen := map[string]bool{}
	o.names = seen
	for i, s := range o.Services {
		at := fmt.Sprintf("services[%d]", i)
		if s.Name == "" || len(s.Name) > 512 || seen[s.Name] {
			return at, fmt.Sprintf("its name is %q: want a name of at most 512 bytes that no other service here has", s.Name)
		}
		seen[s.Name] = true
		if s.Target != nil && !unit.Ratio(*s.Target).Valid() {
			return at + ".target_local_ratio", fmt.Sprintf("it is %v: want 0 to 1", *s.Target)
		}
	}
	for i, p := range o.Excluded {
		if _, err := path.Match(p, "/"); err != nil || p == "" || p[0] != '/' || len(p) > mostOrderText {
			return fmt.Sprintf("excluded[%d]", i), fmt.Sprintf("%q is not a pattern of a cgroup path: want e.g. /demo/*", p)
		}
	}
	return "", ""
}

// Version names the content.
func (o Orders) Version() string { return o.version }

// Names says whether the orders are about a service.
func (o Orders) Names(service string) bool { return o.names[service] }

// Message is what a host that pulls the orders now gets. rollouts are orders for services that are
// rolled out, by host; where the file names the service, the file holds. When the file's orders have
// ended, those of rollouts go on.
func (o Orders) Message(now time.Time, rollouts []ServiceOrder) *wirepb.OrdersResponse {
	end := now.Add(o.ValidFor)
	if !o.until.IsZero() && o.until.Before(end) {
		end = o.until
	}
	if !end.After(now) {
		o, end = noOrders, now.Add(noOrders.ValidFor)
	}
	rollouts = slices.DeleteFunc(slices.Clone(rollouts), func(s ServiceOrder) bool { return o.Names(s.Name) })
	if o.version == "" && len(rollouts) == 0 {
		return &wirepb.OrdersResponse{}
	}
	m := &wirepb.OrdersResponse{Version: o.version, ExpiresNs: end.UnixNano()}
	for _, s := range slices.Concat(o.Services, rollouts) {
		m.Services = append(m.Services, &wirepb.ServiceOrder{Service: []byte(s.Name), Approved: s.Approved, TargetRatio: s.Target})
	}
	for _, p := range o.Excluded {
		m.Excluded = append(m.Excluded, []byte(p))
	}
	if len(rollouts) > 0 {
		m.Version = versionOf(fmt.Appendf(nil, "%s %v", o.version, rollouts))
	}
	return m
}

// noOrders are those of no file.
var noOrders = Orders{ValidFor: usualValidFor}

const usualValidFor = time.Hour

func versionOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// ordersFile reads its file again when it has changed.
type ordersFile struct {
	path string
	mu   sync.Mutex
	size int64
	time time.Time
	last *Orders
	err  error
}

func (f *ordersFile) read() (Orders, error) {
	if f.path == "" {
		return noOrders, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.path)
	if err != nil {
		return Orders{}, fmt.Errorf("read orders: %w", err)
	}
	if f.last == nil || st.Size() != f.size || !st.ModTime().Equal(f.time) {
		o, err := ReadOrders(f.path)
		f.last, f.err, f.size, f.time = &o, err, st.Size(), st.ModTime()
	}
	return *f.last, f.err
}
