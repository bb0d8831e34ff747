// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// The prefixes of what homenode makes; nothing else is ever removed or written to.
const (
	monPrefix = "homenode-mon-" // monitoring groups: a killed homenode's are removed by the next, or by restore
	ctlPrefix = "homenode-ctl-" // control groups: the journal removes them
)

// MonName is the monitoring group of a workload, ControlName its control group.
func MonName(workload string) string { return monPrefix + safe(workload) }

// ControlName is the control group of a workload.
func ControlName(workload string) string { return ctlPrefix + safe(workload) }

// IsMon reports that a group's name is one that MonName makes.
func IsMon(name string) bool { return ours(name, monPrefix) }

// IsControl reports that a group's name is one that ControlName makes.
func IsControl(name string) bool { return ours(name, ctlPrefix) }

// ours also checks the hash: a user may have a "homenode-mon-test" of their own.
func ours(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || len(rest) < hashLength+1 || rest[len(rest)-hashLength-1] != '-' {
		return false
	}
	return strings.Trim(rest[len(rest)-hashLength:], "0123456789abcdef") == ""
}

const (
	hashLength = 16
	readable   = 40 // of the id, in the name: a name may have 255 bytes
)

// safe is an id as a part of a file name: the characters that a person can read, then a
// hash of the whole id.
func safe(id string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, strings.Trim(id, "/"))
	if len(text) > readable {
		text = text[len(text)-readable:]
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s-%016x", text, h.Sum64())
}
