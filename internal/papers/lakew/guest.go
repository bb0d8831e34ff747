// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"homenode/internal/sim"
	"homenode/internal/sim/apps"
	"homenode/internal/unit"
)

const (
	// resident is the share of a VM's memory that it has touched. The paper does not say.
	// What its programs touch by themselves is less still (a gigabyte of a small VM's 16,
	// ten of a huge one's 288). More takes longer to move: while VMs wait for their memory
	// they saturate the links by which it comes, and half of it, 512 GB, takes most of an
	// hour (decision 0025).
	resident = 0.125
	// cacheable is up to what size a thread's own data can matter to a cache: ten times the
	// machine's largest.
	cacheable = 64 * unit.MiB
)

// spec is a VM as a workload: a thread a core, its memory first touched where its
// threads are. What it does is the application's.
func (v vm) spec() sim.Spec {
	app, ok := apps.Named(v.app)
	if !ok {
		panic("lakew: there is no application " + v.app)
	}
	s := app.Spec(v.name(), v.size.Cores, unit.Bytes(float64(v.size.Memory)*resident))
	s.Service = v.app
	guest(&s)
	return s
}

// guest makes a program's threads a VM's vCPUs. The guest's kernel lets tasks run on any
// vCPU and takes its machine for flat (as virsh makes it by default), so over the
// minutes of a run each of its pages is used by all vCPUs: what is a thread's own in the
// program is the VM's here. Had each vCPU pages that only it uses, Linux would keep most
// of them local by first touch, without any mapping.
//
//  1. Data that no cache can hold are one region of all threads.
//  2. What caches can hold is each thread's own still, for it is read from where it runs;
//     its pages are anywhere in the VM's memory.
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
