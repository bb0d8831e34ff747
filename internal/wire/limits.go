// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"time"
)

// Schema is the version of a batch. A hub defers a newer one: its agent keeps the batch
// until the hub is newer, too.
const Schema = 1

// Bounds of what a batch may hold. A window is some 300 bytes as a message and 60 packed.
const (
	MostPacked  = 1 << 20  // bytes of a packed batch
	MostMessage = 8 << 20  // bytes of its message
	MostRows    = 4_000    // windows; nodes, decisions and outcomes each
	MostNodes   = 1_024    // length of an array by node (the kernel's MAX_NUMNODES)
	MostName    = 4_096    // bytes of a workload's path (PATH_MAX)
	MostLabel   = 512      // bytes of other names
	MostText    = 16 << 10 // bytes of a sentence
	MostNodeID  = 1 << 20

	// MostSend bounds a request: packed bytes and batches of it.
	MostSend        = 4 << 20
	MostSendBatches = 256
)

// future is how far a host's clock may be ahead. More makes its windows the newest for
// long; less refuses hosts whose time service has not started.
const future = 5 * time.Minute

// earliest is before any window: a clock that stands at 1970 is not set.
var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Reason is why a batch was not taken. It is a label of a metric.
type Reason string

// The reasons.
const (
	Malformed Reason = "malformed" // cut off, or no batch
	TooLarge  Reason = "too_large" // more bytes, rows or entries than a batch may have
	Newer     Reason = "newer"     // of a newer schema: deferred
	BadFigure Reason = "figure"    // NaN, infinite, negative, or a ratio above 1
	BadName   Reason = "name"      // empty where it must not be, or too long
	BadTime   Reason = "time"      // from the future, or of a clock that is not set
	WrongHost Reason = "host"      // it says another host than the certificate
)

// Reasons are all of them, so that each has a series from the start.
var Reasons = []Reason{Malformed, TooLarge, Newer, BadFigure, BadName, BadTime, WrongHost}

// Refusal is why a batch was not taken.
type Refusal struct {
	Reason Reason
	Detail string
}

func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Detail }

func refuse(why Reason, format string, args ...any) error {
	return &Refusal{why, fmt.Sprintf(format, args...)}
}
