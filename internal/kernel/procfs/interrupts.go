// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"strings"

	"homenode/internal/set"
)

var errHeader = errors.New("not a row of CPU0 CPU1 …")

// Interrupt is one line of /proc/interrupts.
type Interrupt struct {
	Number string // "125"
	Name   string // "PCI-MSI-0000:00:04.0 0-edge nvme0q0"
	Counts []uint64
}

// Interrupts are those of devices: the numbered ones. Counts are parallel to CPUs.
type Interrupts struct {
	CPUs []int
	IRQs []Interrupt
}

// ParseInterrupts reads /proc/interrupts (since 2.0), counts since boot by online
// CPU:
//
//	           CPU0       CPU1
//	  1:          0          9   IO-APIC   1-edge      i8042
//	LOC:      55081      60112   Local timer interrupts
func ParseInterrupts(data []byte) (Interrupts, error) {
	var all Interrupts
	for n, line := range lines(data) {
		if n == 1 {
			var err error
			if all.CPUs, err = cpuColumns(line); err != nil {
				return Interrupts{}, malformed("/proc/interrupts", n, line, err)
			}
			continue
		}
		id, rest, ok := bytes.Cut(line, []byte(":"))
		id = bytes.TrimSpace(id)
		if _, err := number(id); err != nil && ok {
			continue // NMI, LOC, ERR: not a device's
		}
		i := Interrupt{Number: string(id), Counts: make([]uint64, len(all.CPUs))}
		rest, err := i.counts(rest)
		if !ok || err != nil {
			return Interrupts{}, malformed("/proc/interrupts", n, line, errors.Join(err, errShortIf(!ok)))
		}
		i.Name = strings.Join(strings.Fields(string(rest)), " ")
		all.IRQs = append(all.IRQs, i)
	}
	return all, nil
}

func errShortIf(yes bool) error {
	if yes {
		return errShort
	}
	return nil
}

func cpuColumns(line []byte) ([]int, error) {
	var cpus []int
	for f := range bytes.FieldsSeq(line) {
		id, ok := bytes.CutPrefix(f, []byte("CPU"))
		cpu, err := number(id)
		if !ok || err != nil || cpu > set.MaxCPU {
			return nil, errHeader
		}
		cpus = append(cpus, int(cpu))
	}
	if len(cpus) == 0 {
		return nil, errHeader
	}
	return cpus, nil
}

func (i *Interrupt) counts(rest []byte) (_ []byte, err error) {
	for c := range i.Counts {
		var f []byte
		if f, rest = nextField(rest); len(f) == 0 {
			return nil, errShort
		}
		if i.Counts[c], err = number(f); err != nil {
			return nil, err
		}
	}
	return rest, nil
}
