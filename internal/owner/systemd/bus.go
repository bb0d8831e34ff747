// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// bus sends requests to systemd; tests have a fake.
type bus interface {
	// Unit reads what matters of a unit. systemd loads the unit for that.
	Unit(ctx context.Context, name string) (unitState, error)
	// Set sets one property, until the next boot at most.
	Set(ctx context.Context, name, property string, mask []byte) error
}

// unitState is a unit as systemd sees it now.
type unitState struct {
	Load      string // "loaded", "not-found", …
	Cgroup    string // "" while the unit runs nothing
	Transient bool   // made at run time: gone when it ends
	Fragment  string // its file
	DropIns   []string
	CPUs      []byte
	Mems      []byte
}

// The sockets of systemd. Its own socket is for root, needs no dbus-daemon, and exists
// before one.
const (
	private   = "/run/systemd/private"
	systemBus = "/run/dbus/system_bus_socket"

	service = "org.freedesktop.systemd1"
	object  = dbus.ObjectPath("/org/freedesktop/systemd1")
)

// liveBus talks to systemd itself. It connects when a request needs it, and again after
// trouble: systemd closes all connections when it re-executes itself.
type liveBus struct {
	sockets []string // in the order in which they are tried
	mu      sync.Mutex
	conn    *dbus.Conn
}

func newLiveBus(root kernel.Root) *liveBus {
	return &liveBus{sockets: []string{root.Path(private), root.Path(systemBus)}}
}

func (b *liveBus) connect(ctx context.Context) (*dbus.Conn, error) {
	if b.conn != nil && b.conn.Connected() {
		return b.conn, nil
	}
	var errs []error
	for i, socket := range b.sockets {
		conn, err := dial(ctx, socket, i > 0)
		if err == nil {
			b.conn = conn
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("connect to systemd: %w (%w)", errors.Join(errs...), errNotSent)
}

// dial connects to a socket of systemd's, or to a bus, which wants a Hello first.
func dial(ctx context.Context, socket string, hello bool) (*dbus.Conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(end) // otherwise it waits longer
	}
	conn, err := dbus.DialUnix(raw.(*net.UnixConn))
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil && hello {
		err = conn.Hello()
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("say who we are on %s: %w", socket, err), conn.Close())
	}
	return conn, nil
}

// call sends a request, and repeats it on a new connection if the old one had ended:
// every request may be sent twice.
func (b *liveBus) call(ctx context.Context, path dbus.ObjectPath, method string, args []any, into ...any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for again := b.conn != nil; ; again = false {
		conn, err := b.connect(ctx)
		if err != nil {
			return err
		}
		err = conn.Object(service, path).CallWithContext(ctx, method, 0, args...).Store(into...)
		var said dbus.Error
		if err == nil || errors.As(err, &said) {
			return err
		}
		b.conn = nil
		_ = conn.Close() // it is of no use any more
		if !again || ctx.Err() != nil {
			return err
		}
	}
}

func (b *liveBus) Unit(ctx context.Context, name string) (s unitState, err error) {
	var path dbus.ObjectPath
	if err := b.call(ctx, object, service+".Manager.LoadUnit", []any{name}, &path); err != nil {
		return s, err
	}
	unit, kind := service+".Unit", service+"."+kindOf(name)
	for _, p := range []struct {
		iface, name string
		into        any
	}{
		{unit, "LoadState", &s.Load}, {unit, "Transient", &s.Transient}, {unit, "FragmentPath", &s.Fragment},
		{unit, "DropInPaths", &s.DropIns}, {kind, "ControlGroup", &s.Cgroup}, {kind, CPUs, &s.CPUs}, {kind, Mems, &s.Mems},
	} {
		var v dbus.Variant
		err := b.call(ctx, path, "org.freedesktop.DBus.Properties.Get", []any{p.iface, p.name}, &v)
		if err == nil {
			err = v.Store(p.into)
		}
		if err != nil {
			return unitState{}, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return s, nil
}

// property is one of SetUnitProperties' a(sv).
type property struct {
	Name  string
	Value dbus.Variant
}

func (b *liveBus) Set(ctx context.Context, name, prop string, mask []byte) error {
	const runtime = true
	return b.call(ctx, object, service+".Manager.SetUnitProperties", []any{name, runtime, []property{{prop, dbus.MakeVariant(mask)}}})
}

// explain turns systemd's refusal, or a missing answer, into an error.
func explain(verb, what string, err error) error {
	if err == nil {
		return nil
	}
	kind, text, need := reading(err)
	text = fmt.Sprintf("%s %s: %s", verb, what, text)
	for _, k := range []error{kind, journal.ErrUnsure} {
		if k != nil && (k == kind || errors.Is(err, k)) {
			text = fmt.Sprintf("%s (%s)", text, k)
		}
	}
	return explained{text + need, err, kind}
}

// explained wraps the sentinel that a refusal stands for, and its cause.
type explained struct {
	text      string
	err, kind error
}

func (e explained) Error() string { return e.text }

func (e explained) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.err, e.kind}
}

// reading returns the sentinel of an answer, its text, and what would have been needed.
func reading(err error) (kind error, text, need string) {
	var said dbus.Error
	switch {
	case errors.As(err, &said):
	case errors.Is(err, context.DeadlineExceeded):
		return journal.ErrNoAnswer, "systemd has not answered in time", ""
	default: // no process listens, or the connection ended
		return journal.ErrNoAnswer, err.Error(), ""
	}
	text = "systemd says: " + said.Name
	if len(said.Body) > 0 {
		text = fmt.Sprintf("systemd says: %v", said.Body[0])
	}
	switch kind = errorKind(said.Name); kind {
	case kernel.ErrNotPermitted:
		need = ": it needs root, or a polkit rule for org.freedesktop.systemd1.manage-units"
	case kernel.ErrNotSupported:
		need = ": it needs systemd 244 or later, on cgroup v2"
	}
	return kind, text, need
}

// errorKind is the sentinel for an error's name, nil without one.
func errorKind(name string) error {
	const std = "org.freedesktop.DBus.Error."
	switch name {
	case service + ".NoSuchUnit":
		return kernel.ErrGone
	case std + "AccessDenied", std + "InteractiveAuthorizationRequired", std + "AuthFailed":
		return kernel.ErrNotPermitted
	case std + "UnknownProperty", std + "PropertyReadOnly", std + "NotSupported":
		return kernel.ErrNotSupported
	case std + "NoReply", std + "Timeout", std + "TimedOut", std + "Disconnected", std + "NoServer", std + "ServiceUnknown", std + "NameHasNoOwner":
		return journal.ErrNoAnswer // of the bus: systemd has said nothing
	case service + ".UnitMasked", service + ".BadUnitSetting", std + "InvalidArgs":
		return journal.ErrRefused
	}
	if strings.HasPrefix(name, "org.freedesktop.PolicyKit1.Error.") {
		return kernel.ErrNotPermitted
	}
	return nil
}

// answered reports that the fate of a request is known: systemd answered it, or it was
// never sent.
func answered(err error) bool {
	var said dbus.Error
	return err == nil || errors.As(err, &said) && !errors.Is(errorKind(said.Name), journal.ErrNoAnswer) || errors.Is(err, errNotSent)
}

// errNotSent means that no process listens on the sockets.
var errNotSent = errors.New("no process listens")
