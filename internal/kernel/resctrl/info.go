// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Info is the content of info/ on this machine.
type Info struct {
	Monitoring Monitoring
	Resources  []Limit // resources that can be limited, ascending by name
}

// Monitoring is info/L3_MON; the zero value: there is none.
type Monitoring struct {
	RMIDs    int // most groups of both kinds, the default one included
	Features []string
	// Limbo is the occupancy below which a freed RMID can be used again.
	Limbo unit.Opt[unit.Bytes]
	// Counters is the number of free counters in the domain with the fewest, where they
	// must be assigned (ABMC); unknown: every group has its own.
	Counters unit.Opt[int]
}

// Has reports that an event is counted.
func (m Monitoring) Has(event string) bool { return slices.Contains(m.Features, event) }

// Limit is one resource that can be limited: info/L3, info/MB, ….
type Limit struct {
	Name    string
	CLOSIDs int // most control groups, the default one included
	// Of caches. A mask's bits are ways.
	Mask, Shareable uint64
	MinBits         int
	Sparse          bool
	Taken           map[int]uint64 // by domain: exclusive, or pseudo-locked
	// Of bandwidth: the minimum and the step.
	Least, Step uint64
}

// CLOSIDs is the most control groups, the default one included; 0: none.
func (i Info) CLOSIDs() int {
	least := 0
	for _, r := range i.Resources {
		if least == 0 || r.CLOSIDs < least {
			least = r.CLOSIDs
		}
	}
	return least
}

// Limit returns a resource's.
func (i Info) Limit(name string) (Limit, bool) {
	for _, r := range i.Resources {
		if r.Name == name {
			return r, true
		}
	}
	return Limit{}, false
}

// ReadInfo reads info/. What could not be read is missing, and in the error.
func ReadInfo(fs FS) (Info, error) {
	names, err := fs.Dirs("info")
	if err != nil {
		return Info{}, unix.Explain("read", "resctrl info", "", err)
	}
	slices.Sort(names)
	r := infoReader{fs: fs}
	var i Info
	for _, name := range names {
		switch {
		case name == "L3_MON":
			i.Monitoring = r.monitoring("info/" + name)
		case isMask(name) && !strings.HasSuffix(name, "_MON"):
			i.Resources = append(i.Resources, r.cache(name))
		case isBandwidth(name):
			i.Resources = append(i.Resources, Limit{Name: name, CLOSIDs: r.count(name, "num_closids"), Least: r.number(name, "min_bandwidth", 10), Step: r.number(name, "bandwidth_gran", 10)})
		}
	}
	i.Resources = slices.DeleteFunc(i.Resources, func(l Limit) bool { return l.CLOSIDs == 0 })
	return i, errors.Join(r.errs...)
}

type infoReader struct {
	fs   FS
	errs []error
}

// text is a file's content; "" with a note, where the file is required.
func (r *infoReader) text(file string, must bool) string {
	data, err := r.fs.Read(file)
	if err != nil && (must || !IsGone(err)) {
		r.errs = append(r.errs, unix.Explain("read", "resctrl "+file, "", err))
	}
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (r *infoReader) number(name, file string, base int) uint64 {
	return r.parse("info/"+name+"/"+file, base)
}

func (r *infoReader) parse(file string, base int) uint64 {
	text := r.text(file, true)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, base, 64)
	if err != nil {
		r.errs = append(r.errs, malformed(file, text, errNumber))
		return 0
	}
	return n
}

// count is a small number of things.
func (r *infoReader) count(name, file string) int {
	n := r.number(name, file, 10)
	if n > mostIDs {
		r.errs = append(r.errs, malformed(file, strconv.FormatUint(n, 10), errNumber))
		return 0
	}
	return int(n)
}

const mostIDs = 1 << 20

var (
	errNumber = errors.New("not a number that can be")
	errUsage  = errors.New("want DOMAIN=a letter for each way")
)

func (r *infoReader) cache(name string) Limit {
	l := Limit{
		Name: name, CLOSIDs: r.count(name, "num_closids"), Mask: r.number(name, "cbm_mask", 16),
		MinBits: r.count(name, "min_cbm_bits"), Shareable: r.number(name, "shareable_bits", 16),
		Sparse: r.text("info/"+name+"/sparse_masks", false) == "1", // since 6.7
	}
	usage := r.text("info/"+name+"/bit_usage", false) // since 4.19
	taken, err := ParseBitUsage([]byte(usage), bits.Len64(l.Mask))
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", name, err))
	}
	l.Taken = taken
	return l
}

// ParseBitUsage reads info/L3/bit_usage (since 4.19) and returns, by domain, the ways
// that no other group can have: exclusive (E) or pseudo-locked (P). The highest way comes
// first:
//
//	0=SSSSSSSSSSSSSSSSXXXX;1=SSSSSSSSSSSSSSSSEEEE
func ParseBitUsage(data []byte, ways int) (map[int]uint64, error) {
	taken := map[int]uint64{}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return taken, nil
	}
	for _, part := range strings.Split(strings.TrimRight(text, ";"), ";") {
		id, letters, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 31)
		if !ok || err != nil || len(letters) != ways || strings.Trim(letters, "0HXSEP") != "" {
			return nil, malformed("bit_usage", part, errUsage)
		}
		for i, c := range letters {
			if c == 'E' || c == 'P' {
				taken[int(n)] |= 1 << (ways - 1 - i)
			}
		}
	}
	return taken, nil
}

func (r *infoReader) monitoring(dir string) Monitoring {
	m := Monitoring{Features: strings.Fields(r.text(dir+"/mon_features", true))}
	if n := r.parse(dir+"/num_rmids", 10); n <= mostIDs {
		m.RMIDs = int(n)
	}
	if r.text(dir+"/max_threshold_occupancy", false) != "" {
		m.Limbo = unit.Some(unit.Bytes(min(r.parse(dir+"/max_threshold_occupancy", 10), 1<<62)))
	}
	// Since 6.18: "[mbm_event]\ndefault".
	if !strings.Contains(r.text(dir+"/mbm_assign_mode", false), "[mbm_event]") {
		return m
	}
	free, err := parseDomains(r.text(dir+"/available_mbm_cntrs", true), false)
	if err != nil {
		r.errs = append(r.errs, malformed("available_mbm_cntrs", "", err))
		return m
	}
	least := uint64(mostIDs)
	for _, d := range free {
		least = min(least, d.Value)
	}
	m.Counters = unit.Some(int(least))
	return m
}
