// SPDX-License-Identifier: Apache-2.0

package bpfcount

import (
	"github.com/cilium/ebpf/asm"
)

// An entry of the ledger, and a CPU's state, are words of 8 bytes: the clock, the
// leader's times, and a value for each event. The state continues with its owner, which
// is the id of the cgroup that the words are the base of (0: none). Then come the tick of
// the last decision whether this CPU counts, and the decision.
const (
	wordClock = iota
	wordEnabled
	wordRunning
	wordValues
)

const word = 8

// Places on the program's stack, below its frame.
const (
	atPrev  = -8  // id of the cgroup that leaves
	atNext  = -16 // of the one that comes
	atCPU   = -24
	atIndex = -32
	atValue = -56 // struct bpf_perf_event_value: counter, enabled, running
)

// rootID is the id of every hierarchy's root, where the idle task is. It is never
// a workload: not looked up.
const rootID = 1

// layout has the offsets, in bytes, of the fields that lead from a task to the id of its
// cgroup, from this kernel's BTF.
type layout struct {
	taskCgroups int16 // task_struct.cgroups
	setCgroup   int16 // css_set.dfl_cgrp, or css_set.subsys[SUBSYS] (cgroup v1)
	cssCgroup   int16 // cgroup_subsys_state.cgroup; −1: setCgroup is the cgroup
	cgroupNode  int16 // cgroup.kn
	nodeID      int16 // kernfs_node.id
}

// maps are file descriptors of the program's maps.
type maps struct {
	slots, ledger, state int
	events               []int // one map for each event of a CPU, by CPU
}

// shape is what a program is made for.
type shape struct {
	layout
	maps
	cpus  int  // the ledger's stride
	every int  // a busy CPU counts in one of so many ticks, at random; ≤ 1: always
	asked bool // the program that credits the running task, without a switch
}

func (s shape) owner() int16  { return int16(word * (wordValues + len(s.events))) }
func (s shape) tick() int16   { return s.owner() + word }
func (s shape) on() int16     { return s.owner() + 2*word } // weight of stays that begin now; 0: they do not count
func (s shape) weight() int16 { return s.owner() + 3*word } // of the owner's stay
func (s shape) seen() int16   { return s.owner() + 4*word } // switches in this tick

// quiet is the number of switches in a tick up to which there is no sampling: a tick is 1
// to 10 ms, so all of them cost at most 0.4 % where one costs 1 µs.
const quiet = 4

// load reads a field of 8 bytes behind the pointer in r.
func load(r asm.Register, offset int16) asm.Instruction {
	return asm.LoadMem(r, r, offset, asm.DWord)
}

// cgroupOf goes from a task to its cgroup.
func (s shape) cgroupOf(r asm.Register) asm.Instructions {
	all := asm.Instructions{load(r, s.taskCgroups), load(r, s.setCgroup)}
	if s.cssCgroup >= 0 {
		all = append(all, load(r, s.cssCgroup))
	}
	return all
}

func (s shape) idOf(r asm.Register) asm.Instructions {
	return asm.Instructions{load(r, s.cgroupNode), load(r, s.nodeID)}
}

// onSwitch is for tp_btf/sched_switch (preempt, prev, next, prev_state). Interrupts
// are off and the run queue is locked; prev is still the current task.
//
//  1. In a tick without counting there is nothing to do, unless a stay ends that began in
//     a tick with counting: each stay counts whole or not at all, by when it began.
//  2. Between tasks of one cgroup there is nothing to do: what they did is the cgroup's.
//  3. Nor is there between two cgroups that are not counted.
//  4. Otherwise what the CPU did since its base goes to prev's cgroup, and the base is
//     new.
func (s shape) onSwitch() asm.Instructions {
	all := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 1*word, asm.DWord),
		asm.LoadMem(asm.R7, asm.R1, 2*word, asm.DWord),
	}
	if s.every > 1 {
		all = append(all, s.draw()...) // (1)
	}
	all = append(all, s.cgroupOf(asm.R6)...)
	all = append(all, s.cgroupOf(asm.R7)...)
	all = append(all, asm.JEq.Reg(asm.R6, asm.R7, "exit")) // (2)
	all = append(all, s.idOf(asm.R6)...)
	all = append(all, s.idOf(asm.R7)...)
	all = append(all,
		asm.StoreMem(asm.RFP, atPrev, asm.R6, asm.DWord),
		asm.StoreMem(asm.RFP, atNext, asm.R7, asm.DWord),
	)
	all = append(all, s.slotOf(asm.R7, atNext, asm.R9, "next")...)
	all = append(all, s.slotOf(asm.R6, atPrev, asm.R8, "prev")...)
	all = append(all,
		asm.JNE.Imm(asm.R8, 0, "account"),
		asm.JEq.Imm(asm.R9, 0, "exit"), // (3)
	)
	return append(all, s.account()...) // (4)
}

// draw continues where this CPU counts in this tick, or has a stay to end. It keeps R6,
// R7.
//
//  1. A tick after one with few switches counts: there it costs next to nothing.
//  2. Others are drawn at random: with every n-th one, work done at ticks would be seen
//     always or never. A drawn tick stands for n (Horvitz and Thompson, 1952).
func (s shape) draw() asm.Instructions {
	all := append(s.stateInto(asm.R9), asm.FnJiffies64.Call(),
		asm.LoadMem(asm.R8, asm.R9, s.seen(), asm.DWord), asm.Add.Imm(asm.R8, 1),
		asm.StoreMem(asm.R9, s.seen(), asm.R8, asm.DWord),
		asm.LoadMem(asm.R1, asm.R9, s.tick(), asm.DWord),
		asm.JEq.Reg(asm.R0, asm.R1, "drawn"),
		asm.StoreMem(asm.R9, s.tick(), asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R9, s.seen(), asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 1),
		asm.JLE.Imm(asm.R8, quiet, "off"), // (1)
		asm.FnGetPrandomU32.Call(),        // (2)
		asm.Mod.Imm32(asm.R0, int32(s.every)),
		asm.Mov.Imm(asm.R1, 0),
		asm.JNE.Imm(asm.R0, 0, "off"),
		asm.Mov.Imm(asm.R1, int32(s.every)),
		asm.StoreMem(asm.R9, s.on(), asm.R1, asm.DWord).WithSymbol("off"),
		asm.LoadMem(asm.R1, asm.R9, s.on(), asm.DWord).WithSymbol("drawn"),
		asm.JNE.Imm(asm.R1, 0, "counts"),
		asm.LoadMem(asm.R1, asm.R9, s.owner(), asm.DWord),
		asm.JEq.Imm(asm.R1, 0, "exit"),
		asm.Mov.Reg(asm.R6, asm.R6).WithSymbol("counts"),
	)
	return all
}

// stateInto finds this CPU's state and leaves the CPU on the stack.
func (s shape) stateInto(r asm.Register) asm.Instructions {
	return asm.Instructions{
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(asm.RFP, atCPU, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, s.state),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, atCPU),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Reg(r, asm.R0),
	}
}

// onAsk credits what runs now on this CPU, without a switch.
func (s shape) onAsk() asm.Instructions {
	all := asm.Instructions{asm.FnGetCurrentTaskBtf.Call(), asm.Mov.Reg(asm.R6, asm.R0)}
	all = append(all, s.cgroupOf(asm.R6)...)
	all = append(all, s.idOf(asm.R6)...)
	all = append(all,
		asm.Mov.Reg(asm.R7, asm.R6),
		asm.StoreMem(asm.RFP, atPrev, asm.R6, asm.DWord),
	)
	all = append(all, s.slotOf(asm.R6, atPrev, asm.R8, "prev")...)
	s.asked = true // a task that does not leave the CPU is seen in any case
	return append(all, s.account()...)
}

// slotOf looks an id up; 0 is the slot of everything that is not counted.
func (s shape) slotOf(id asm.Register, at int16, into asm.Register, label string) asm.Instructions {
	done := label + "_done"
	return asm.Instructions{
		asm.Mov.Imm(into, 0),
		asm.JEq.Imm(id, rootID, done),
		asm.LoadMapPtr(asm.R1, s.slots),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(at)),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, done),
		asm.LoadMem(into, asm.R0, 0, asm.Word),
		asm.Mov.Reg(into, into).WithSymbol(done),
	}
}

// account: R6 is the id that was here, R7 the one that comes, R8 the slot of R6.
//
//  1. The state of this CPU, in R9.
//  2. The entry to add to, in R8: the slot's, if the base is its own; otherwise slot 0's,
//     which is never read (a cgroup that was added while it ran has no base yet).
//  3. Clock and counters: add now − base to the entry, and now is the base.
//
// Only this CPU writes these words, and with no switch in between: no lock, no atomics.
func (s shape) account() asm.Instructions {
	all := s.stateInto(asm.R9) // (1)
	all[0] = all[0].WithSymbol("account")
	all = append(all,
		asm.LoadMem(asm.R1, asm.R9, s.owner(), asm.DWord), // (2)
		asm.JEq.Reg(asm.R1, asm.R6, "own"),
		asm.Mov.Imm(asm.R8, 0),
		asm.Mul.Imm(asm.R8, int32(s.cpus)).WithSymbol("own"),
		asm.LoadMem(asm.R1, asm.RFP, atCPU, asm.DWord),
		asm.Add.Reg(asm.R8, asm.R1),
		asm.StoreMem(asm.RFP, atIndex, asm.R8, asm.DWord),
		asm.LoadMapPtr(asm.R1, s.ledger),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, atIndex),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Mov.Imm(asm.R1, 0), // no base, should a counter not be readable
		asm.StoreMem(asm.R9, s.owner(), asm.R1, asm.DWord),
	)
	if len(s.events) == 0 { // (3); else the leader's time enabled is the clock
		all = append(append(all, asm.FnKtimeGetNs.Call()), s.creditGrowth(asm.R0, wordClock)...)
	}
	for i := range s.events {
		all = append(all, s.readEvent(i)...)
	}
	switch {
	case s.asked:
		all = append(all, asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R9, s.weight(), asm.R1, asm.DWord))
	case s.every > 1:
		all = append(all, asm.LoadMem(asm.R1, asm.R9, s.on(), asm.DWord), asm.JEq.Imm(asm.R1, 0, "exit"),
			asm.StoreMem(asm.R9, s.weight(), asm.R1, asm.DWord))
	}
	return append(all,
		asm.StoreMem(asm.R9, s.owner(), asm.R7, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	)
}

// creditGrowth credits the growth of a word since the base, times the weight of the stay. now is
// R0 or R3, and is lost.
func (s shape) creditGrowth(now asm.Register, w int) asm.Instructions {
	at := int16(word * w)
	all := asm.Instructions{
		asm.LoadMem(asm.R1, asm.R9, at, asm.DWord),
		asm.StoreMem(asm.R9, at, now, asm.DWord),
		asm.Sub.Reg(now, asm.R1),
	}
	if s.every > 1 {
		all = append(all, asm.LoadMem(asm.R1, asm.R9, s.weight(), asm.DWord), asm.Mul.Reg(now, asm.R1))
	}
	return append(all,
		asm.LoadMem(asm.R2, asm.R8, at, asm.DWord),
		asm.Add.Reg(asm.R2, now),
		asm.StoreMem(asm.R8, at, asm.R2, asm.DWord),
	)
}

// readEvent reads the i-th event of this CPU; the first one's times are the group's. The
// others are read without theirs, which saves the kernel reading its clock
// (calc_timer_values in kernel/events/core.c). bpf_perf_event_read returns a negated
// errno instead of a count, which no counter reaches.
func (s shape) readEvent(i int) asm.Instructions {
	all := asm.Instructions{
		asm.LoadMapPtr(asm.R1, s.events[i]),
		asm.LoadMem(asm.R2, asm.RFP, atCPU, asm.DWord),
	}
	if i > 0 {
		all = append(all, asm.FnPerfEventRead.Call(), asm.Mov.Reg(asm.R3, asm.R0), asm.JGE.Imm(asm.R0, -4095, "exit"))
		return append(all, s.creditGrowth(asm.R3, wordValues+i)...)
	}
	all = append(all,
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, atValue),
		asm.Mov.Imm(asm.R4, 3*word),
		asm.FnPerfEventReadValue.Call(),
		asm.JNE.Imm(asm.R0, 0, "exit"),
		asm.LoadMem(asm.R3, asm.RFP, atValue, asm.DWord),
	)
	all = append(all, s.creditGrowth(asm.R3, wordValues)...)
	for _, w := range []int{wordEnabled, wordRunning} {
		all = append(all, asm.LoadMem(asm.R3, asm.RFP, int16(atValue+word*w), asm.DWord))
		all = append(all, s.creditGrowth(asm.R3, w)...)
	}
	return all
}
