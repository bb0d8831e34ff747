// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Opt is a value that may be unknown. The zero Opt is unknown; two Opts of a
// comparable T compare with ==.
type Opt[T any] struct {
	v  T // the zero T when !ok, so that == works
	ok bool
}

// Some is a known value. A float that is NaN or infinite is no figure (0/0, x/0),
// and becomes None; this also keeps every Opt printable as JSON.
func Some[T any](v T) Opt[T] {
	if !finite(v) {
		return None[T]()
	}
	return Opt[T]{v: v, ok: true}
}

// None is unknown.
func None[T any]() Opt[T] { return Opt[T]{} }

// OptOf turns the usual pair (value, known) into an Opt.
func OptOf[T any](v T, ok bool) Opt[T] {
	if !ok {
		return None[T]()
	}
	return Some(v)
}

// Get returns the value and whether it is known.
func (o Opt[T]) Get() (T, bool) { return o.v, o.ok }

// Known reports whether there is a value.
func (o Opt[T]) Known() bool { return o.ok }

// Or returns the value, or other when unknown.
func (o Opt[T]) Or(other T) T {
	if o.ok {
		return o.v
	}
	return other
}

// IsZero lets `json:",omitzero"` leave an unknown value out.
func (o Opt[T]) IsZero() bool { return !o.ok }

// String is the value's own text, or "unknown".
func (o Opt[T]) String() string {
	if !o.ok {
		return "unknown"
	}
	return fmt.Sprint(o.v)
}

// MarshalJSON writes the value, or null.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.ok {
		return []byte("null"), nil
	}
	return json.Marshal(o.v)
}

// UnmarshalJSON reads a value, or null. On error the Opt becomes unknown.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	*o = Opt[T]{}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil
	}
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}

func finite(v any) bool {
	var f float64
	switch x := v.(type) {
	case float64:
		f = x
	case float32:
		f = float64(x)
	case Ratio:
		f = float64(x)
	}
	return !math.IsNaN(f) && !math.IsInf(f, 0)
}
