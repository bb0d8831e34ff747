// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"time"

	"homenode/internal/unit"
)

// Result is the outcome of a move in figures.
type Result struct {
	Kinds []KindResult  `json:"kinds"`   // in the order of Kinds, only of those that were tried
	Calls int           `json:"calls"`   // of move_pages that moved
	Time  time.Duration `json:"time_ns"` // by the clock; all of it, finding pages included
	CPU   time.Duration `json:"cpu_ns"`  // of the workers
	// Longest is the longest of these calls, by the clock, and Over how many took
	// longer than the limit. OverWhy says what is missing, if something is.
	Longest time.Duration `json:"longest_call_ns"`
	Over    int           `json:"calls_over,omitempty"`
	OverWhy string        `json:"calls_over_why,omitempty"`
	Batch   int           `json:"batch_pages"` // pages a call at the end
	Workers int           `json:"workers"`
	Retried int           `json:"retried_pages,omitempty"` // that were busy at first
	// Complete says that every process and file was read to its end. If not, Stopped
	// says why: the budget, a signal, the time.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
	// Problems is what happened on the way, a sentence each: a process that ended, a
	// file that was truncated.
	Problems []string `json:"problems,omitempty"`
}

// KindResult is one kind.
type KindResult struct {
	Kind  Kind       `json:"kind"`
	Moved unit.Bytes `json:"moved_bytes"`
	// Gone was freed, swapped out or unmapped after it was found and before it was
	// moved.
	Gone   unit.Bytes `json:"gone_bytes,omitempty"`
	Failed []Failure  `json:"failed,omitempty"` // descending by bytes
}

// Failure is why pages stayed where they were.
type Failure struct {
	Reason string     `json:"error"` // an errno's name, "EBUSY"; or "left: …" for pages left on purpose
	Bytes  unit.Bytes `json:"bytes"`
}

// Of finds or makes the result of a kind.
func (r *Result) Of(k Kind) *KindResult {
	at := 0
	for _, kind := range Kinds() {
		here := at < len(r.Kinds) && r.Kinds[at].Kind == kind
		switch {
		case kind == k && here:
			return &r.Kinds[at]
		case kind == k:
			r.Kinds = append(r.Kinds[:at], append([]KindResult{{Kind: k}}, r.Kinds[at:]...)...)
			return &r.Kinds[at]
		case here:
			at++
		}
	}
	panic("migration: no such kind: " + string(k))
}

// Fail counts pages that stayed.
func (k *KindResult) Fail(reason string, b unit.Bytes) {
	for i := range k.Failed {
		if k.Failed[i].Reason == reason {
			k.Failed[i].Bytes += b
			for ; i > 0 && k.Failed[i].Bytes > k.Failed[i-1].Bytes; i-- {
				k.Failed[i], k.Failed[i-1] = k.Failed[i-1], k.Failed[i]
			}
			return
		}
	}
	k.Failed = append(k.Failed, Failure{reason, b})
	for i := len(k.Failed) - 1; i > 0 && k.Failed[i].Bytes > k.Failed[i-1].Bytes; i-- {
		k.Failed[i], k.Failed[i-1] = k.Failed[i-1], k.Failed[i]
	}
}

// Moved is all that moved.
func (r Result) Moved() (sum unit.Bytes) {
	for _, k := range r.Kinds {
		sum += k.Moved
	}
	return sum
}

// Gone is all memory that left by itself.
func (r Result) Gone() (sum unit.Bytes) {
	for _, k := range r.Kinds {
		sum += k.Gone
	}
	return sum
}

// Failed is all memory that stayed, for any reason.
func (r Result) Failed() (sum unit.Bytes) {
	for _, k := range r.Kinds {
		for _, f := range k.Failed {
			sum += f.Bytes
		}
	}
	return sum
}

// Rate is bytes a second; unknown until something moved.
func (r Result) Rate() (unit.Bytes, bool) {
	if r.Time <= 0 || r.Moved() == 0 {
		return 0, false
	}
	return unit.Bytes(float64(r.Moved()) / r.Time.Seconds()), true
}
