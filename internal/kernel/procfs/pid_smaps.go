// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"

	"homenode/internal/unit"
)

// SmapsArea is a mapping of /proc/PID/smaps. Pages of hugetlbfs are in HugeTLB only,
// not in RSS and Referenced.
type SmapsArea struct {
	Area
	PageSize   unit.Bytes // KernelPageSize
	RSS        unit.Bytes
	Referenced unit.Bytes // of RSS: accessed since clear_refs, or since the kernel looked
	Huge       unit.Bytes // of RSS: mapped as transparent huge pages
	AnonHuge   unit.Bytes // of Huge: private
	HugeTLB    unit.Bytes
}

var errNoFields = errors.New("the mapping before it has no KernelPageSize, Rss or Referenced")

// smapsParser reads /proc/PID/smaps (since 2.6.14; Referenced 2.6.22, KernelPageSize
// 2.6.29, AnonHugePages 2.6.38), ascending:
//
//	7f1c40000000-7f1c40200000 rw-p 00000000 00:00 0
//	KernelPageSize:        4 kB
//	Rss:                2048 kB
//	Referenced:         1024 kB
//	AnonHugePages:      2048 kB
//	VmFlags: rd wr mr mw me ac
//
// A kernel thread has none. Lines that are not needed are skipped.
type smapsParser struct {
	all  []SmapsArea
	seen int // of the three fields that every mapping has
	n    int // line
}

func (p *smapsParser) line(n int, line []byte) error {
	p.n = n
	key, rest := nextField(line)
	if !bytes.HasSuffix(key, []byte(":")) {
		return p.head(line)
	}
	if len(p.all) == 0 {
		return malformed("/proc/PID/smaps", n, line, errRange)
	}
	always, err := p.all[len(p.all)-1].field(string(key), rest)
	if err != nil {
		return malformed("/proc/PID/smaps", n, line, err)
	}
	p.seen += always
	return nil
}

func (p *smapsParser) head(line []byte) error {
	if len(p.all) > 0 && p.seen != 3 {
		return malformed("/proc/PID/smaps", p.n, line, errNoFields)
	}
	a, err := parseArea("/proc/PID/smaps", p.n, line)
	p.all, p.seen = append(p.all, SmapsArea{Area: a}), 0
	return err
}

func (p *smapsParser) end() ([]SmapsArea, error) {
	if len(p.all) > 0 && p.seen != 3 {
		return nil, malformed("/proc/PID/smaps", p.n+1, nil, errNoFields)
	}
	return p.all, nil
}

// field reads a line, and returns 1 for one that every mapping has.
func (a *SmapsArea) field(key string, rest []byte) (always int, err error) {
	var into *unit.Bytes
	switch key {
	case "KernelPageSize:":
		into, always = &a.PageSize, 1
	case "Rss:":
		into, always = &a.RSS, 1
	case "Referenced:":
		into, always = &a.Referenced, 1
	case "AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:":
		into = &a.Huge
	case "Shared_Hugetlb:", "Private_Hugetlb:":
		into = &a.HugeTLB
	default:
		return 0, nil
	}
	b, err := kibibytes(rest)
	if err == nil && (*into > 1<<60 || key == "KernelPageSize:" && (b == 0 || b&(b-1) != 0)) {
		err = errNumber
	}
	if *into += b; key == "AnonHugePages:" {
		a.AnonHuge += b
	}
	return always, err
}
