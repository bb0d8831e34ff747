// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// counts are a group's files at one moment, by domain, ascending.
type counts struct {
	at      time.Time
	domains []domainCounts
}

type domainCounts struct {
	id                int
	llc, total, local Count
}

// none stands for an event that is not counted here.
const none = "not counted here"

// readCounts reads mon_data of a group. On a machine with sub-NUMA clusters the files of
// a domain are the sum over its nodes (since 6.11, where mon_sub_L3_YY has each of them).
// Before, the kernel counted only a part of them.
func (m *Monitor) readCounts(dir string, at time.Time) (counts, error) {
	data := path.Join(dir, "mon_data")
	names, err := m.fs.Dirs(data)
	if err != nil {
		return counts{}, unix.Explain("list", "resctrl "+data, "", err)
	}
	c := counts{at: at}
	for _, name := range names {
		if !strings.HasPrefix(name, "mon_L3_") { // other resources (since 6.19: mon_PERF_PKG_XX)
			continue
		}
		id, err := ParseMonDomain(name)
		if err != nil {
			return counts{}, err
		}
		d := domainCounts{id: id}
		if err := m.checkClusters(id, path.Join(data, name)); err != nil {
			return counts{}, err
		}
		for _, f := range []struct {
			into *Count
			file string
		}{{&d.llc, fileLLC}, {&d.total, fileTotal}, {&d.local, fileLocal}} {
			if *f.into, err = m.readCount(path.Join(data, name), f.file); err != nil {
				return counts{}, err
			}
		}
		c.domains = append(c.domains, d)
	}
	slices.SortFunc(c.domains, func(a, b domainCounts) int { return cmp.Compare(a.id, b.id) })
	return c, nil
}

func (m *Monitor) readCount(dir, file string) (Count, error) {
	if !m.info.Monitoring.Has(file) {
		return Count{Word: none}, nil
	}
	data, err := m.fs.Read(path.Join(dir, file))
	if err != nil {
		return Count{}, unix.Explain("read", "resctrl "+path.Join(dir, file), "", err)
	}
	return ParseCount(data)
}

// checkClusters is called once for each domain.
func (m *Monitor) checkClusters(id int, dir string) error {
	nodes, several := m.clusters[id]
	if !several {
		return nil
	}
	subs, err := m.fs.Dirs(dir)
	if err != nil {
		return unix.Explain("list", "resctrl "+dir, "", err)
	}
	if !slices.ContainsFunc(subs, func(s string) bool { return strings.HasPrefix(s, "mon_sub_L3_") }) {
		return fmt.Errorf("read resctrl %s: its cache spans nodes %v, and this kernel (before 6.11) counts a part of such a one only (%w)", dir, nodes, unix.ErrNotSupported)
	}
	delete(m.clusters, id)
	return nil
}

// field is one event of a domain.
type field func(domainCounts) Count

// since adds up the growth of an event in all domains. It is unknown, with the reason,
// where any domain has no figure, went back, or grew by more than can be carried:
//
//   - The hardware's counter has 24 bits and more, in units of some 10 KB, and the kernel
//     extends it each second (mbm_handle_overflow in fs/resctrl/monitor.c). A counter
//     that the kernel read too late, or that has another RMID's past, gives no figure.
//   - A delta is not corrected: the size of a wrap is unknown here.
func since(event string, before, now counts, of field, most unit.Bytes) unit.Value[unit.Bytes] {
	unknown := func(format string, args ...any) unit.Value[unit.Bytes] {
		return unit.UnknownValue[unit.Bytes]("resctrl " + event + ": " + fmt.Sprintf(format, args...))
	}
	elapsed := now.at.Sub(before.at).Seconds()
	if elapsed <= 0 || len(now.domains) == 0 {
		return unknown("no time has passed, or there is no domain")
	}
	if !slices.EqualFunc(before.domains, now.domains, func(a, b domainCounts) bool { return a.id == b.id }) {
		return unknown("the caches that it counts in changed (CPUs went on- or offline)")
	}
	var sum uint64
	for i, d := range now.domains {
		was, is := of(before.domains[i]), of(d)
		switch {
		case is.Word != "" || was.Word != "":
			return unknown("%s in domain %d", cmp.Or(is.Word, was.Word), d.id)
		case is.Bytes < was.Bytes:
			return unknown("it went backwards in domain %d, from %d to %d", d.id, was.Bytes, is.Bytes)
		case float64(is.Bytes-was.Bytes) > float64(most)*elapsed:
			return unknown("%v in %.3g s in domain %d are more than a cache's controllers and links can carry (%v/s)", unit.Bytes(is.Bytes-was.Bytes), elapsed, d.id, most)
		}
		sum += is.Bytes - was.Bytes
	}
	return unit.Measured(unit.Bytes(sum), "resctrl "+event)
}

// held is what a workload holds in all caches.
func (c counts) held() unit.Value[unit.Bytes] {
	var sum uint64
	for _, d := range c.domains {
		if d.llc.Word != "" {
			return unit.UnknownValue[unit.Bytes](fmt.Sprintf("resctrl %s: %s in domain %d", fileLLC, d.llc.Word, d.id))
		}
		if sum += d.llc.Bytes; d.llc.Bytes > mostCache || sum > mostCache {
			return unit.UnknownValue[unit.Bytes](fmt.Sprintf("resctrl %s: %d bytes in domain %d are more than caches have", fileLLC, d.llc.Bytes, d.id))
		}
	}
	if len(c.domains) == 0 {
		return unit.UnknownValue[unit.Bytes]("resctrl " + fileLLC + ": there is no domain")
	}
	return unit.Measured(unit.Bytes(sum), "resctrl "+fileLLC)
}

// mostCache bounds all caches of a host together.
const mostCache = 1 << 40

// localWithin limits the local figure to the total. The two files are read one after the
// other, so a little more is normal. Much more is an error (known of some Intel models:
// correction factors in fs and arch code).
func localWithin(local, total unit.Value[unit.Bytes]) unit.Value[unit.Bytes] {
	l, ok1 := local.Get()
	t, ok2 := total.Get()
	switch {
	case !ok1 || !ok2 || l <= t:
		return local
	case float64(l) <= 1.05*float64(t)+float64(unit.MiB):
		return unit.ValueOf(t, local.How, local.From)
	}
	return unit.UnknownValue[unit.Bytes](fmt.Sprintf("resctrl %s: %v, more than the total of %v", fileLocal, l, t))
}

// contested reports that a counter stood still while the PMU counted: it no longer
// belongs to this workload.
func contested(total unit.Value[unit.Bytes], local, remote unit.Value[uint64]) bool {
	const many = 1_000_000 // loads from DRAM, 64 MB
	t, ok := total.Get()
	return ok && t == 0 && local.Or(0)+remote.Or(0) > many
}
