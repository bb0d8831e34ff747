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
	// bandwidth (CAT, MBA), so that others have the rest. An empty Class ends that.
	Isolate Kind = "isolate"
	// Escalate says that this host cannot help: an event with its evidence, for the
	// scheduler that places workloads on hosts. It never becomes a step.
	Escalate Kind = "escalate"
)

// Action is what a policy asks for, for one workload.
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
	// was decided. An isolation that no action asks for in a window ends.
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
	Cache     unit.Ratio `yaml:"cache" json:"cache,omitempty"`               // of each last-level cache's ways, rounded up to whole ones
	Bandwidth unit.Ratio `yaml:"bandwidth" json:"bandwidth_ratio,omitempty"` // of each node's, rounded to the hardware's steps
}

// None says that nothing is limited.
func (c Class) None() bool { return c == Class{} }

// Reason is why: the rule that fired and what it looked at. It holds codes and figures;
// render/words makes the sentence.
type Reason struct {
	Rule     string `json:"rule"` // e.g. "mao.bind", "mao.unbind.B", "mao.keep"
	Workload string `json:"workload"`
	// What the sentence names, besides figures; which of them a rule sets, its sentence
	// in render/words shows.
	Nodes  set.NodeSet `json:"nodes,omitzero"`
	Other  string      `json:"other,omitempty"`  // another workload
	Detail string      `json:"detail,omitempty"` // a name, or what the kernel, an owner or a reader said, word for word
	// Numbers are the figures that the rule looked at. Names are unique.
	Numbers []Number `json:"numbers,omitempty"`
	// Cause is the reason behind this one.
	Cause        *Reason       `json:"cause,omitempty"`
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Because is the reason with another one behind it.
func (r Reason) Because(cause Reason) Reason {
	r.Cause = &cause
	return r
}

// Renamed is the reason with other names for its workloads.
func (r Reason) Renamed(name func(string) string) Reason {
	r.Workload, r.Other = name(r.Workload), name(r.Other)
	if r.Cause != nil {
		cause := r.Cause.Renamed(name)
		r.Cause = &cause
	}
	return r
}

// Number returns a figure by its name; false if the reason has none of that name.
func (r Reason) Number(name string) (Number, bool) {
	for _, n := range r.Numbers {
		if n.Name == name {
			return n, true
		}
	}
	return Number{}, false
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

// Counted is a figure that the policy counted itself, such as windows.
func Counted(name string, v float64, of string) Number {
	return Number{Name: name, Value: unit.Measured(v, "counted"), Unit: of}
}

// Alternative is something that was considered: a placement, or one of Name. Code is ""
// for one that fits, else the tightest constraint that it breaks: "cpu", "memory",
// "bandwidth", "device", "mems", "empty", "worse".
type Alternative struct {
	Name    string      `json:"name,omitempty"`
	Nodes   set.NodeSet `json:"nodes"`
	Code    string      `json:"code"`
	Figures []Figure    `json:"figures,omitempty"`
	Chosen  bool        `json:"chosen,omitempty"`
}

// Figure is one estimate of an alternative. What is unknown is left out.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
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
	PageCache bool          `json:"page_cache,omitempty"` // MovePages: also pages of its files that no process maps
	Thread    int           `json:"thread,omitempty"`     // PinThread: which, and CPUs are its; none: what it had before
	Start     uint64        `json:"start,omitempty"`      // PinThread: when it started, ticks after boot; 0: any thread with the TID
	Release   bool          `json:"release,omitempty"`    // PinThread: it has its affinity back at once, and stays for now
	HotFirst  bool          `json:"hot_first,omitempty"`  // MovePages: what is accessed now comes first
	Class     *Class        `json:"isolation,omitempty"`  // SetClass; an empty one: give back what was before
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
	Refused    Status = "refused"     // the kernel, the owner or actuate said no; Detail or Why says why
	Drifted    Status = "drifted"     // another process changed the setting after us
	Gone       Status = "gone"        // the workload vanished
	Failed     Status = "failed"
	DryRun     Status = "dry-run" // it would have been done
)

// Outcome is what became of one step.
type Outcome struct {
	Step   Step   `json:"step"`
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"` // what the kernel or an owner said
	Why    Reason `json:"reason,omitzero"`  // of an outcome that actuate itself reports
	// Stays: refused, and the binding that there was is what it was.
	Stays bool `json:"stays,omitempty"`
	// Undone: refused, after it was begun: what was set of it is being put back.
	Undone bool       `json:"undone,omitempty"`
	Moved  unit.Bytes `json:"moved_bytes,omitempty"`
	Failed unit.Bytes `json:"failed_bytes,omitempty"` // pages the kernel would not move, this time
	// HotHome: of MovePages with HotFirst, what is accessed is there; the rest may be left.
	HotHome bool `json:"hot_home,omitempty"`
	// Took is how long the step took; 0: not known. Only the running loop uses it: it is
	// not recorded.
	Took time.Duration `json:"-"`
	// CPUSeconds is CPU time the mover itself spent on this step.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
}

// Renamed is the outcome with other names for its workloads.
func (o Outcome) Renamed(name func(string) string) Outcome {
	o.Step.Workload = name(o.Step.Workload)
	o.Step.Reason, o.Why = o.Step.Reason.Renamed(name), o.Why.Renamed(name)
	return o
}
