// SPDX-License-Identifier: Apache-2.0

package action

import (
	"slices"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Kind says what an Action asks for.
type Kind string

// The actions a policy may ask for.
const (
	Bind   Kind = "bind"   // place a workload on nodes: CPUs first, then its pages, then mems
	Unbind Kind = "unbind" // give a workload back what it had before
	Pin    Kind = "pin"    // put one thread on CPUs
	// Isolate keeps a workload to a part of the last-level caches and of the memory
	// bandwidth (CAT, MBA), so that others have the rest; with an empty Class, no longer.
	Isolate Kind = "isolate"
	// Escalate says that this host cannot help: an event with its evidence, for whoever
	// places workloads on hosts. It never becomes a step.
	Escalate Kind = "escalate"
)

// Action is one wish of a policy about one workload.
type Action struct {
	Kind     Kind        `json:"kind"`
	Workload string      `json:"workload"`
	Nodes    set.NodeSet `json:"nodes"` // Bind: where to; else empty
	CPUsOnly bool        `json:"cpus_only,omitempty"`
	// CPUs, of a Bind: these of its nodes' CPUs only; empty: all of them. Of a Pin: where
	// the thread is put; empty: it is given back what it had.
	CPUs   set.CPUSet `json:"cpus,omitzero"`
	Thread int        `json:"thread,omitempty"` // Pin: its TID
	// Release, of a Pin: the thread is put there and has its affinity back at once. It
	// stays until the kernel's own balancing moves it; nothing of ours is left.
	Release bool   `json:"release,omitempty"`
	Class   *Class `json:"class,omitempty"` // Isolate
	// Renew, of an Isolate: it was asked for in an earlier window, and still is; nothing
	// was decided. Who does not ask in a window does not want it any more.
	Renew  bool   `json:"renew,omitempty"`
	Reason Reason `json:"reason"`
}

// Decided are the actions that something was decided for in their window: without those
// that renew what was asked for before.
func Decided(all []Action) []Action {
	renews := func(a Action) bool { return a.Renew }
	if !slices.ContainsFunc(all, renews) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), renews)
}

// Class is the part of a host's last-level caches and memory bandwidth that a workload
// may use. 0: as much as it likes.
type Class struct {
	Cache     unit.Ratio `json:"cache,omitempty"`     // of each last-level cache's ways, rounded up to whole ones
	Bandwidth unit.Ratio `json:"bandwidth,omitempty"` // of each node's, rounded to the hardware's steps
}

// None says that nothing is limited.
func (c Class) None() bool { return c == Class{} }

// Reason is why: the rule that fired, the numbers it looked at, and what else
// was possible. It is data, so that every face can say it in its own words.
type Reason struct {
	Rule         string        `json:"rule"` // e.g. "mao.bind", "mao.unbind.B", "mao.keep"
	Workload     string        `json:"workload"`
	Summary      string        `json:"summary"` // one sentence, without the numbers' sources
	Numbers      []Number      `json:"numbers,omitempty"`
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Number is one figure a rule looked at, next to its limit, if it has one.
type Number struct {
	Name  string              `json:"name"` // e.g. "local_access_ratio"
	Value unit.Value[float64] `json:"value"`
	Limit unit.Opt[float64]   `json:"limit"`
	Unit  string              `json:"unit,omitempty"` // "ratio", "cpus", "bytes", …
	// Decides: of several conditions that must all hold, this one did not.
	Decides bool `json:"decides,omitempty"`
}

// Alternative is a placement that was considered. Code is "" for one that fits,
// else the tightest constraint that it breaks: "cpu", "memory", "bandwidth",
// "device", "mems", "empty".
type Alternative struct {
	Nodes  set.NodeSet `json:"nodes"`
	Code   string      `json:"code"`
	Detail string      `json:"detail"`
	Chosen bool        `json:"chosen,omitempty"`
}

// Step is one concrete thing to do to a workload through its owner. The
// state machines of actuate cut Actions into Steps that fit into one window.
type Step struct {
	Kind     StepKind    `json:"kind"`
	Workload string      `json:"workload"`
	CPUs     set.CPUSet  `json:"cpus"`                   // SetCPUs
	Nodes    set.NodeSet `json:"nodes"`                  // SetMems, MovePages: where to
	From     set.NodeSet `json:"from"`                   // MovePages: where from
	Budget   unit.Bytes  `json:"budget_bytes,omitempty"` // MovePages: at most this much in this window
	// Rate is bytes/s at which MovePages goes on, and MaxStall what one call may take:
	// the budget is spread over the window. 0: unlimited.
	Rate      unit.Bytes    `json:"rate_bytes_per_s,omitempty"`
	MaxStall  time.Duration `json:"max_stall_ns,omitempty"`
	PageCache bool          `json:"page_cache,omitempty"` // MovePages: pages of its files that nobody maps, too
	Thread    int           `json:"thread,omitempty"`     // PinThread: which, and CPUs are its; none: what it had before
	Start     uint64        `json:"start,omitempty"`      // PinThread: when it started, ticks after boot; 0: whoever has the TID
	Release   bool          `json:"release,omitempty"`    // PinThread: it has its affinity back at once, and stays for now
	HotFirst  bool          `json:"hot_first,omitempty"`  // MovePages: what is accessed now comes first
	Class     *Class        `json:"class,omitempty"`      // SetClass; an empty one: give back what was before
	Reason    Reason        `json:"reason"`
}

// StepKind says what a Step does.
type StepKind string

// The steps an owner can be asked to take.
const (
	SetCPUs   StepKind = "set-cpus"
	SetMems   StepKind = "set-mems"
	MovePages StepKind = "move-pages"
	Freeze    StepKind = "freeze"  // its processes stand still until Restore
	Restore   StepKind = "restore" // put back what was there before the first step
	PinThread StepKind = "pin-thread"
	SetClass  StepKind = "set-class" // resctrl: cache ways and memory bandwidth
)

// Status says what became of a step.
type Status string

// What can become of a step.
const (
	Done       Status = "done"
	InProgress Status = "in-progress" // MovePages: budget used up, more is left
	Refused    Status = "refused"     // the kernel or the owner said no; Detail says why
	Drifted    Status = "drifted"     // somebody else changed the setting after us
	Gone       Status = "gone"        // the workload vanished
	Failed     Status = "failed"
	DryRun     Status = "dry-run" // it would have been done
)

// Outcome is what became of one step.
type Outcome struct {
	Step   Step   `json:"step"`
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Stays: refused, and the binding that there was is what it was.
	Stays bool `json:"stays,omitempty"`
	// Undone: refused, after it was begun: what was set of it is being put back.
	Undone bool       `json:"undone,omitempty"`
	Moved  unit.Bytes `json:"moved_bytes,omitempty"`
	Failed unit.Bytes `json:"failed_bytes,omitempty"` // pages the kernel would not move, this time
	// HotHome: of MovePages with HotFirst, what is accessed is there; the rest may be left.
	HotHome bool `json:"hot_home,omitempty"`
	// Took is how long the step took; 0: not known. It is for who takes the next step: no
	// recording has it.
	Took time.Duration `json:"-"`
	// CPUSeconds is CPU time the mover itself spent on this step.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
}
