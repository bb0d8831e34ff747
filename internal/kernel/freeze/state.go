// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// Values of the files.
const (
	frozenV2, thawedV2             = "1", "0"
	frozenV1, freezingV1, thawedV1 = "FROZEN", "FREEZING", "THAWED"
)

// State is the state of a cgroup's freezer.
type State struct {
	Own   bool // a freeze was requested for this cgroup itself
	Above bool // a freeze was requested for a cgroup above (v2: known once Still only)
	Still bool // every process stands still
}

// Thawed reports that no freeze was requested, here or above.
func (s State) Thawed() bool { return s == State{} }

// ParseFreeze reads cgroup.freeze of v2 (since 5.2): what was requested for this cgroup.
//
//	0
func ParseFreeze(data []byte) (bool, error) { return parseBit(FileV2, data) }

// ParseFreezing reads freezer.self_freezing or freezer.parent_freezing of v1 (since 3.8),
// 0 or 1: what was requested for this cgroup, or for one above.
func ParseFreezing(data []byte) (bool, error) { return parseBit("freezer.self_freezing", data) }

func parseBit(file string, data []byte) (bool, error) {
	switch string(bytes.TrimSpace(data)) {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, malformed(file, data, "0 or 1")
}

// ParseFreezerState reads freezer.state of v1 (since 2.6.28): THAWED, FREEZING, or
// FROZEN, which it also is when one above is.
func ParseFreezerState(data []byte) (asked, still bool, err error) {
	switch string(bytes.TrimSpace(data)) {
	case thawedV1:
		return false, false, nil
	case freezingV1:
		return true, false, nil
	case frozenV1:
		return true, true, nil
	}
	return false, false, malformed(FileV1, data, "THAWED, FREEZING or FROZEN")
}

func malformed(file string, data []byte, want string) error {
	return fmt.Errorf("parse %s: line 1 %q: want %s (%w)", file, data[:min(len(data), 60)], want, unix.ErrMalformed)
}

// State reads the state of the freezer.
func (f *Freezer) State() (State, error) {
	if f.v2 {
		return f.stateV2()
	}
	return f.stateV1()
}

func (f *Freezer) stateV2() (s State, err error) {
	if s.Own, err = read(f, 0, ParseFreeze); err != nil {
		return State{}, err
	}
	if s.Still, err = read(f, 1, cgroup.ParseFrozen); err != nil {
		return State{}, err
	}
	s.Above = s.Still && !s.Own
	return s, nil
}

// stateV1: before 3.8, or on a fake, there is only freezer.state.
func (f *Freezer) stateV1() (s State, err error) {
	asked, err := read(f, 0, func(data []byte) (asked bool, err error) {
		asked, s.Still, err = ParseFreezerState(data)
		return asked, err
	})
	if err != nil {
		return State{}, err
	}
	own, err1 := read(f, 1, ParseFreezing)
	above, err2 := read(f, 2, ParseFreezing)
	if err1 != nil || err2 != nil {
		own, above = asked, false
	}
	s.Own, s.Above = own, above
	return s, nil
}

func read[T any](f *Freezer, i int, parse func([]byte) (T, error)) (v T, err error) {
	data, err := f.state[i].Read(&f.buf)
	if err != nil {
		return v, err
	}
	return parse(data)
}

// Value is the file's content for what was requested for this cgroup itself, and Asked is
// its meaning: on v1 a cgroup whose parent is frozen reads FROZEN, though no freeze was
// requested for it.
func (f *Freezer) Value(frozen bool) string {
	switch {
	case f.v2 && frozen:
		return frozenV2
	case f.v2:
		return thawedV2
	case frozen:
		return frozenV1
	}
	return thawedV1
}

// Asked is the reverse of Value. On v1 both FREEZING and FROZEN mean that a freeze was
// requested; 0 and 1 are also the values of freezer.self_freezing.
func Asked(value string) bool {
	return value == frozenV2 || value == frozenV1 || value == freezingV1
}

// Set asks for a freeze, or thaws. It opens nothing, and the kernel accepts it even if
// disks or tables are full.
func (f *Freezer) Set(frozen bool) error {
	if _, err := f.control.WriteAt([]byte(f.Value(frozen)+"\n"), 0); err != nil {
		return unix.Explain("write", f.control.Name(), "", err)
	}
	return nil
}

// Wait waits until every process stands still, or the context ends. On v1 a process may
// be missed if the request comes at the wrong moment (a fork, a ptrace stop): it is
// requested again.
func (f *Freezer) Wait(ctx context.Context) error {
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		s, err := f.State()
		switch {
		case err != nil:
			return fmt.Errorf("freeze %s: %w", f.ID, err)
		case s.Still:
			return nil
		case !s.Own:
			return fmt.Errorf("freeze %s: another process thawed it meanwhile", f.ID)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("freeze %s: not every process stands still: %w", f.ID, context.Cause(ctx))
		case <-time.After(pause):
		}
		if !f.v2 {
			if err := f.Set(true); err != nil {
				return err
			}
		}
	}
}
