// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Schemata is the limits of a control group, ascending by resource.
type Schemata []Resource

// Resource is one resource in each of its domains, ascending by domain.
type Resource struct {
	Name    string // "L3", "L3CODE", "L3DATA", "L2", "L2CODE", "L2DATA", "MB", "SMBA"
	Domains []DomainValue
}

// DomainValue is a mask of ways, or of MB an amount in the unit that is mounted:
// percent (Intel), eighths of a GB/s (AMD), MiB/s (mba_MBps).
type DomainValue struct {
	ID    int
	Value uint64
}

// isMask reports that values of a resource are masks, in hexadecimal.
func isMask(name string) bool { return strings.HasPrefix(name, "L3") || strings.HasPrefix(name, "L2") }

func isBandwidth(name string) bool { return name == "MB" || name == "SMBA" }

var (
	errDomains  = errors.New("want DOMAIN=VALUE;DOMAIN=VALUE")
	errTwice    = errors.New("twice")
	errResource = errors.New("want RESOURCE:DOMAIN=VALUE;…")
)

// ParseSchemata reads schemata (since 4.10), with names and values padded:
//
//	MB:0=100;1= 50
//	L3:0=fffff;1=0000f
//
// Resources that are unknown here are left out.
func ParseSchemata(data []byte) (Schemata, error) {
	var s Schemata
	for _, line := range strings.Split(string(data), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, malformed("schemata", line, errResource)
		}
		if !isMask(name) && !isBandwidth(name) {
			continue
		}
		if _, there := s.Get(name); there {
			return nil, malformed("schemata", line, errTwice)
		}
		r := Resource{Name: name}
		var err error
		if r.Domains, err = parseDomains(rest, isMask(name)); err != nil {
			return nil, malformed("schemata", line, err)
		}
		s = append(s, r)
	}
	slices.SortFunc(s, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// parseDomains reads "0=fffff;1=0000f".
func parseDomains(text string, hex bool) ([]DomainValue, error) {
	base := 10
	if hex {
		base = 16
	}
	var all []DomainValue
	for _, part := range strings.Split(strings.TrimRight(text, "; \t"), ";") {
		id, value, ok := strings.Cut(part, "=")
		n, err1 := strconv.ParseUint(strings.TrimSpace(id), 10, 31)
		v, err2 := strconv.ParseUint(strings.TrimSpace(value), base, 64)
		if !ok || err1 != nil || err2 != nil {
			return nil, errDomains
		}
		all = append(all, DomainValue{int(n), v})
	}
	slices.SortFunc(all, func(a, b DomainValue) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(all); i++ {
		if all[i].ID == all[i-1].ID {
			return nil, errTwice
		}
	}
	return all, nil
}

// Get returns the resource with that name.
func (s Schemata) Get(name string) (Resource, bool) {
	for _, r := range s {
		if r.Name == name {
			return r, true
		}
	}
	return Resource{}, false
}

// String is the form that the kernel expects: a line a resource, "L3:0=f;1=f".
func (s Schemata) String() string {
	lines := make([]string, len(s))
	for i, r := range s {
		lines[i] = r.String()
	}
	return strings.Join(lines, "\n")
}

// String is "L3:0=f;1=f".
func (r Resource) String() string {
	parts := make([]string, len(r.Domains))
	for i, d := range r.Domains {
		if parts[i] = fmt.Sprintf("%d=%d", d.ID, d.Value); isMask(r.Name) {
			parts[i] = fmt.Sprintf("%d=%x", d.ID, d.Value)
		}
	}
	return r.Name + ":" + strings.Join(parts, ";")
}

// Within reports that other has everything of s. Resources and domains that s does not
// mention may have any value.
func (s Schemata) Within(other Schemata) bool {
	for _, r := range s {
		o, ok := other.Get(r.Name)
		if !ok {
			return false
		}
		for _, d := range r.Domains {
			if !slices.Contains(o.Domains, d) {
				return false
			}
		}
	}
	return true
}
