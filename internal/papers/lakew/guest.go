// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/unit"
)

const (
	// resident is the share of a VM's memory that it has touched. The paper does not say.
	// Its programs alone touch even less: a gigabyte of a small VM's 16, ten of a huge VM's
	// 288. A larger share takes longer to move. While VMs wait for their memory, they
	// saturate the links that it comes over; half of the memory, 512 GB, takes most of an
	// hour (decision 0025).
	resident = 0.125
	// cacheable is the largest size at which a thread's own data can matter to a cache: ten
	// times the machine's largest cache.
	cacheable = 64 * unit.MiB
)

// spec describes a VM as a workload: one thread per core, with its memory first touched
// where its threads are. The application gives the rest.
func (v vm) spec() sim.Spec {
	app, ok := catalog.AppNamed(v.app)
	if !ok {
		panic("lakew: there is no application " + v.app)
	}
	s := app.Spec(v.name(), v.size.Cores, unit.Bytes(float64(v.size.Memory)*resident))
	s.Service = v.app
	guest(&s)
	return s
}

// guest turns a program's threads into a VM's vCPUs. The guest's kernel lets tasks run on
// any vCPU and sees a flat machine (virsh's default). Over the minutes of a run all vCPUs
// therefore use each of its pages: what a thread owns in the program belongs to the whole
// VM here. If each vCPU had pages that only it uses, Linux would keep most of them local by
// first touch, without any mapping.
//
//  1. Data too large for any cache form one region that all threads share.
//  2. Data that fit a cache still belong to one thread, as it reads them from where it
//     runs. Their pages are anywhere in the VM's memory.
func guest(s *sim.Spec) {
	all, own := s.Memory.Private+s.Memory.Shared, unit.Bytes(0)
	for i := range s.Work.Regions {
		r := &s.Work.Regions[i]
		switch {
		case r.Shared:
		case r.Size > cacheable: // 1
			r.Shared, r.Size = true, r.Size*unit.Bytes(s.Threads)
		default: // 2
			own += r.Size * unit.Bytes(s.Threads)
		}
	}
	none := 0.0
	s.Memory.Private, s.Memory.Shared, s.Memory.PrivateAccesses = own, all-own, &none
	s.Memory.Toucher = "workers"
}
