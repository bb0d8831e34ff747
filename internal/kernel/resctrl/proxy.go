// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"fmt"

	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	lineBytes = 64
	// fading is the weight of the previous window in a ratio: the last four make up two
	// thirds of it. A higher value follows phases later, a lower one follows noise.
	fading = 0.75
	// fewLoads is too few to learn from: a page that the kernel zeroes is 64 lines.
	fewLoads = 10_000
)

// ratio is bytes by resctrl over bytes by DRAM loads (loads × 64 B). It covers what loads
// do not show, such as prefetches, stores and write-backs.
type ratio struct {
	bytes, lines float64 // fading sums
	windows      int
}

func (r *ratio) learn(bytes unit.Bytes, loads uint64) {
	if loads < fewLoads {
		return
	}
	r.bytes = r.bytes*fading + float64(bytes)
	r.lines = r.lines*fading + float64(loads)*lineBytes
	r.windows++
}

func (r *ratio) get() (float64, bool) {
	if r == nil || r.windows == 0 || r.lines == 0 {
		return 0, false
	}
	return r.bytes / r.lines, true
}

// proxy is what was learnt of one workload, or of all replicas of a service.
type proxy struct{ total, local ratio }

// learn takes a window in which resctrl and the PMU both counted.
func (p *proxy) learn(wl *window.Workload) {
	local, ok1 := wl.LocalLoads.Get()
	remote, ok2 := wl.RemoteLoads.Get()
	if !ok1 || !ok2 {
		return
	}
	if b, ok := wl.Traffic.Get(); ok {
		p.total.learn(b, local+remote)
	}
	if b, ok := wl.LocalTraffic.Get(); ok {
		p.local.learn(b, local)
	}
}

// learnt holds the sources of an estimate's ratio.
type learnt struct {
	own, service *proxy // nil: none
	name         string // of the service
}

// estimate gives a workload without a group a figure from its loads; why is the reason
// for the missing group.
func (l learnt) estimate(wl *window.Workload, why string) {
	local, ok1 := wl.LocalLoads.Get()
	remote, ok2 := wl.RemoteLoads.Get()
	if !ok1 || !ok2 {
		why += "; its DRAM loads are not counted either"
		wl.Traffic, wl.LocalTraffic = unit.UnknownValue[unit.Bytes](why), unit.UnknownValue[unit.Bytes](why)
		return
	}
	wl.Traffic = l.scaled(local+remote, "DRAM loads", why, func(p *proxy) *ratio { return &p.total })
	wl.LocalTraffic = l.scaled(local, "local DRAM loads", why, func(p *proxy) *ratio { return &p.local })
}

func (l learnt) scaled(loads uint64, what, why string, of func(*proxy) *ratio) unit.Value[unit.Bytes] {
	for _, from := range []struct {
		p    *proxy
		whom string
	}{{l.own, "its own"}, {l.service, "service " + l.name}} {
		if from.p == nil {
			continue
		}
		r := of(from.p)
		if k, ok := r.get(); ok {
			return unit.Estimated(unit.Bytes(float64(loads)*lineBytes*k),
				fmt.Sprintf("%s × 64 B × %.2f, learnt from %d windows of %s", what, k, r.windows, from.whom))
		}
	}
	return unit.UnknownValue[unit.Bytes](why + "; no ratio to its DRAM loads is learnt yet")
}
