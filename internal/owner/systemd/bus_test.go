// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// peer answers as systemd's private socket does: no bus, no hello.
type peer struct {
	t      *testing.T
	socket string
	answer func(method string, body []any) (reply []any, refusal string) // refusal "hang": none

	mu    sync.Mutex
	asked []string
	conns []net.Conn
}

func listen(t *testing.T, answer func(string, []any) ([]any, string)) *peer {
	t.Helper()
	p := &peer{t: t, socket: filepath.Join(t.TempDir(), "private"), answer: answer}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); p.hangUp() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, c)
			p.mu.Unlock()
			go p.serve(c)
		}
	}()
	return p
}

// hangUp ends all connections, as daemon-reexec does.
func (p *peer) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// heard lists the methods that it was asked for so far.
func (p *peer) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *peer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for { // the handshake is in lines
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch words := strings.Fields(strings.TrimLeft(line, "\x00")); words[0] {
		case "AUTH":
			if len(words) < 2 {
				fmt.Fprint(c, "REJECTED EXTERNAL ANONYMOUS\r\n")
				continue
			}
			fmt.Fprint(c, "OK 0123456789abcdef0123456789abcdef\r\n")
		case "NEGOTIATE_UNIX_FD":
			fmt.Fprint(c, "ERROR\r\n")
		case "BEGIN":
			p.talk(c, r)
			return
		}
	}
}

func (p *peer) talk(c net.Conn, r *bufio.Reader) {
	for {
		m, err := dbus.DecodeMessage(r)
		if err != nil {
			return
		}
		method := fmt.Sprintf("%v.%v", m.Headers[dbus.FieldInterface].Value(), m.Headers[dbus.FieldMember].Value())
		p.mu.Lock()
		p.asked = append(p.asked, method)
		p.mu.Unlock()
		body, refusal := p.answer(method, m.Body)
		if refusal == "hang" {
			continue
		}
		a := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(m.Serial())}, Body: body}
		if refusal != "" {
			a.Type, a.Headers[dbus.FieldErrorName], a.Body = dbus.TypeError, dbus.MakeVariant(refusal), []any{"because"}
		}
		if len(a.Body) > 0 {
			a.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(a.Body...))
		}
		var text bytes.Buffer
		if err := a.EncodeTo(&text, binary.LittleEndian); err != nil {
			p.t.Error(err)
			return
		}
		binary.LittleEndian.PutUint32(text.Bytes()[8:], m.Serial()) // ours may be any but 0
		if _, err := c.Write(text.Bytes()); err != nil {
			return
		}
	}
}

func properties(method string, body []any) ([]any, string) {
	switch method {
	case service + ".Manager.LoadUnit":
		return []any{dbus.ObjectPath("/org/freedesktop/systemd1/unit/a_2eservice")}, ""
	case service + ".Manager.SetUnitProperties":
		return nil, ""
	}
	v, ok := map[string]any{
		service + ".Unit LoadState": "loaded", service + ".Unit Transient": true, service + ".Unit FragmentPath": "/run/a.service",
		service + ".Unit DropInPaths": []string{"/run/a.conf"}, service + ".Service ControlGroup": "/system.slice/a.service",
		service + ".Service " + CPUs: []byte{0x0c}, service + ".Service " + Mems: []byte{},
	}[fmt.Sprintf("%v %v", body...)]
	if !ok {
		return nil, "org.freedesktop.DBus.Error.UnknownProperty"
	}
	return []any{dbus.MakeVariant(v)}, ""
}

// The messages in both directions; also right after systemd has re-executed itself.
func TestBusWire(t *testing.T) {
	set := make(chan []any, 1) // the peer answers in a goroutine of its own
	p := listen(t, func(method string, body []any) ([]any, string) {
		if method == service+".Manager.SetUnitProperties" {
			set <- body
		}
		return properties(method, body)
	})
	b := &liveBus{sockets: []string{p.socket, filepath.Join(t.TempDir(), "none")}}
	for range 2 {
		u, err := b.Unit(ctx, "a.service")
		if err != nil || u.Load != "loaded" || !u.Transient || u.Cgroup != "/system.slice/a.service" || !slices.Equal(u.CPUs, []byte{0x0c}) || len(u.Mems) != 0 || u.DropIns[0] != "/run/a.conf" {
			t.Fatalf("%+v, %v", u, err)
		}
		p.hangUp()
		time.Sleep(10 * time.Millisecond)
	}
	if err := b.Set(ctx, "a.service", CPUs, []byte{}); err != nil {
		t.Fatal(err)
	}
	want := `[]interface {}{"a.service", true, [][]interface {}{[]interface {}{"AllowedCPUs", dbus.Variant{`
	body := <-set
	if got := fmt.Sprintf("%#v", body); !strings.HasPrefix(got, want) || body[2].([][]any)[0][1].(dbus.Variant).Signature().String() != "ay" {
		t.Errorf("SetUnitProperties with %s, want %s… and a value of type ay", got, want)
	}
	if slices.Contains(p.heard(), "org.freedesktop.DBus.Hello") {
		t.Error("systemd's private socket is no bus, but it was asked for Hello")
	}
}

func TestBusErrors(t *testing.T) {
	for _, c := range []struct {
		refusal, text string
		kind          error
		sure          bool
	}{
		{service + ".NoSuchUnit", "systemd says: because", kernel.ErrGone, true},
		{"org.freedesktop.DBus.Error.AccessDenied", "polkit", kernel.ErrNotPermitted, true},
		{"org.freedesktop.PolicyKit1.Error.NotAuthorized", "polkit", kernel.ErrNotPermitted, true},
		{"org.freedesktop.DBus.Error.PropertyReadOnly", "systemd 244", kernel.ErrNotSupported, true},
		{service + ".UnitMasked", "because", journal.ErrRefused, true},
		{"org.freedesktop.DBus.Error.NoReply", "because", journal.ErrUnsure, false},
		{"org.freedesktop.DBus.Error.Failed", "because", nil, true},
		{"hang", "has not answered in time", journal.ErrUnsure, false},
	} {
		p := listen(t, func(string, []any) ([]any, string) { return nil, c.refusal })
		b := &liveBus{sockets: []string{p.socket}}
		wait := time.Minute
		if c.refusal == "hang" {
			wait = 100 * time.Millisecond
			if _, err := b.connect(ctx); err != nil { // else that might not be done in time
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(ctx, wait)
		err := b.Set(short, "a.service", CPUs, nil)
		cancel()
		if answered(err) != c.sure {
			t.Errorf("%s: answered: %v", c.refusal, err)
		}
		if !answered(err) {
			err = fmt.Errorf("%w (%w)", err, journal.ErrUnsure)
		}
		err = explain("set", "a.service", err)
		if err == nil || !strings.Contains(err.Error(), c.text) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", c.refusal, err)
		}
	}
	b := &liveBus{sockets: []string{filepath.Join(t.TempDir(), "none")}}
	if _, err := b.Unit(ctx, "a.service"); err == nil || !answered(err) || errors.Is(err, kernel.ErrGone) {
		t.Errorf("no server: %v", err)
	}
}
