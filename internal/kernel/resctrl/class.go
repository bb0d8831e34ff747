// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path"
	"strings"

	"homenode/internal/action"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Unit is the meaning of numbers of MB on this machine.
type Unit int

// The units of MB.
const (
	Percent  Unit = iota // Intel, Arm
	EighthGB             // AMD: eighths of 1e9 bytes/s
	MiBps                // with mba_MBps
)

// ReadSchemata reads the limits of a control group, "" for the default one.
func ReadSchemata(fs FS, group string) (Schemata, error) {
	file := path.Join(group, "schemata")
	data, err := fs.Read(file)
	if err != nil {
		return nil, unix.Explain("read", "resctrl "+file, "", err)
	}
	return ParseSchemata(data)
}

// ReadClass is the limit of a control group of ours: the smallest share of its masks, and
// of its bandwidths where these are in percent.
func ReadClass(fs FS, info Info, group string) (action.Class, error) {
	s, err := ReadSchemata(fs, group)
	if err != nil {
		return action.Class{}, err
	}
	var c action.Class
	for _, r := range s {
		l, ok := info.Limit(r.Name)
		if !ok {
			continue
		}
		for _, d := range r.Domains {
			switch {
			case strings.HasPrefix(r.Name, "L3") && l.Mask != 0 && d.Value != l.Mask:
				least(&c.Cache, float64(bits.OnesCount64(d.Value&l.Mask))/float64(bits.OnesCount64(l.Mask)))
			case r.Name == "MB" && l.Step > 1 && d.Value < 100:
				least(&c.Bandwidth, float64(d.Value)/100)
			}
		}
	}
	return c, nil
}

func least(into *unit.Ratio, v float64) {
	if *into == 0 || unit.Ratio(v) < *into {
		*into = unit.Ratio(v)
	}
}

// What cannot be limited here.
var (
	errNoCache     = errors.New("its last-level caches cannot be parted here (no L3 in resctrl's info)")
	errNoBandwidth = errors.New("its memory bandwidth cannot be limited here (no MB in resctrl's info)")
	errShare       = errors.New("want shares from 0 to 1")
)

// Schemata returns what to write for a class, given the schemata of the default group,
// which lists the domains. peak is bytes/s of a domain. Numbers of MB that are not
// percentages need it; 0: unknown.
//
//  1. Cache: a run of ways, as many as the share rounded up, at least min_cbm_bits, as
//     high as possible. It has no way that is exclusive to another group, and as few as
//     possible of those that the hardware uses itself (shareable_bits: devices write
//     there).
//  2. Bandwidth: the next step that is not below the share (the kernel rounds up, too),
//     at least min_bandwidth.
func (i Info) Schemata(c action.Class, now Schemata, u Unit, peak func(domain int) unit.Bytes) (Schemata, error) {
	if !share(c.Cache) || !share(c.Bandwidth) {
		return nil, errShare
	}
	var s Schemata
	haveCache, haveMB := c.Cache == 0, c.Bandwidth == 0
	for _, r := range now {
		l, ok := i.Limit(r.Name)
		if !ok {
			continue
		}
		out := Resource{Name: r.Name}
		for _, d := range r.Domains {
			var v uint64
			var err error
			switch {
			case c.Cache > 0 && strings.HasPrefix(r.Name, "L3"):
				haveCache = true
				v, err = l.ways(c.Cache, d.ID)
			case c.Bandwidth > 0 && r.Name == "MB":
				haveMB = true
				v, err = l.bandwidth(c.Bandwidth, u, peak(d.ID))
			default:
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s of domain %d: %w", r.Name, d.ID, err)
			}
			out.Domains = append(out.Domains, DomainValue{d.ID, v})
		}
		if len(out.Domains) > 0 {
			s = append(s, out)
		}
	}
	switch {
	case !haveCache:
		return nil, errNoCache
	case !haveMB:
		return nil, errNoBandwidth
	}
	return s, nil
}

func share(r unit.Ratio) bool { return r >= 0 && r <= 1 }

// ways is (1) of Schemata.
func (l Limit) ways(r unit.Ratio, domain int) (uint64, error) {
	total := bits.OnesCount64(l.Mask)
	n := max(int(math.Ceil(float64(r)*float64(total)-1e-9)), l.MinBits, 1)
	best, fewest := uint64(0), 65
	for low := 64 - n; low >= 0; low-- {
		run := (^uint64(0) >> (64 - n)) << low
		if run&^l.Mask != 0 || run&l.Taken[domain] != 0 {
			continue
		}
		if shared := bits.OnesCount64(run & l.Shareable); shared < fewest {
			best, fewest = run, shared
		}
	}
	if best == 0 {
		return 0, fmt.Errorf("no %d ways side by side are free of %d", n, total)
	}
	return best, nil
}

// bandwidth is (2) of Schemata.
func (l Limit) bandwidth(r unit.Ratio, u Unit, peak unit.Bytes) (uint64, error) {
	want := float64(r) * 100
	switch {
	case u == Percent:
	case peak <= 0:
		return 0, errors.New("bandwidth is given in absolute numbers here, and what there is is not known: it needs a profile (homenode bench)")
	case u == EighthGB:
		want = float64(r) * float64(peak) / (1e9 / 8)
	case u == MiBps:
		want = float64(r) * float64(peak) / float64(unit.MiB)
	}
	step := max(l.Step, 1)
	if u == MiBps {
		step = 1
	}
	v := l.Least
	if want > float64(v) {
		v += uint64(math.Ceil((want-float64(v))/float64(step)-1e-9)) * step
	}
	if u == Percent {
		v = min(v, 100)
	}
	return v, nil
}
