// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"

	"homenode/internal/render"
)

// References are windows of five loads on a machine, from which Infer's constants for it
// are computed. Each load runs on one CPU, alone in its cache and with its memory near,
// unless its line says otherwise.
type References struct {
	Rabbit  Sample // chases over half of the cache (Slowdowns)
	Devil   Sample // streams over four times the cache (Slowdowns)
	Memory  Sample // chases over eight times the cache, so that hardly anything hits
	Far     Sample // the same, with its memory on another node
	Crowded Sample // the same as Memory, beside the reference devil
}

// Calibrated returns Infer with the machine's own constants of latency and rate, in place
// of those fitted to simulated machines; the scales stay. It compares the wait per request,
// less the wait for hits. An error names the reference that is not usable.
func (f Infer) Calibrated(r References) (Infer, error) {
	hit, err := waitOf("rabbit", r.Rabbit)
	if err != nil {
		return f, err
	}
	if err := r.mixedUp(); err != nil {
		return f, err
	}
	var reads [3]float64 // the cost of a read from memory, in hits
	for i, of := range []struct {
		name string
		s    Sample
	}{{"memory", r.Memory}, {"far", r.Far}, {"crowded", r.Crowded}} {
		wait, err := waitOf(of.name, of.s)
		if err != nil {
			return f, err
		}
		loads, ok := of.s.Loads.Get()
		misses := loads / of.s.Requests.Or(1)
		if !ok || misses < 0.5 {
			return f, fmt.Errorf("animal: calibrate: the reference %q reads from memory in %s of its requests: want half and more, so let it use more of it", of.name, render.Ratio(misses))
		}
		misses = min(1, misses)
		reads[i] = (wait/hit - (1 - misses)) / misses
	}
	lines, ok := r.Devil.Loads.Get()
	if !ok || !(lines > 0) {
		return f, fmt.Errorf("animal: calibrate: the reference \"devil\": reads from memory are not counted, or there are none")
	}
	if !(reads[0] > 1) || !(reads[1] > reads[0]) {
		return f, fmt.Errorf("animal: calibrate: a hit is 1, the reference \"memory\" %s, \"far\" %s: want each above the one before", render.Ratio(reads[0]), render.Ratio(reads[1]))
	}
	if reads[2] < 0.95*reads[0] {
		return f, fmt.Errorf("animal: calibrate: memory takes %s hits alone (\"memory\"), and %s beside the devil (\"crowded\"): want no less", render.Ratio(reads[0]), render.Ratio(reads[2]))
	}
	f.DRAM = reads[0]
	f.Remote = 1 + (reads[1]/reads[0]-1)/r.Far.Far.Or(1)
	f.DevilRate, f.RabbitRate = lines, r.Rabbit.Requests.Or(0)
	f.Crowd = max(least, reads[2]/reads[0]-1) // 0 where it is not slower
	return f, f.validate()
}

// mixedUp names a reference that behaves as another one should.
func (r References) mixedUp() error {
	misses := func(s Sample) float64 { return s.Loads.Or(0) / max(least, s.Requests.Or(0)) }
	switch {
	case misses(r.Rabbit) > 0.2:
		return fmt.Errorf("animal: calibrate: the reference \"rabbit\" reads from memory in %s of its requests: want 0.2 at most, so let it use half of the cache, alone", render.Ratio(misses(r.Rabbit)))
	case r.Devil.Requests.Known() && r.Devil.Loads.Known() && misses(r.Devil) < 0.5:
		return fmt.Errorf("animal: calibrate: the reference \"devil\" reads from memory in %s of its requests: want half and more, so let it stream over four times the cache", render.Ratio(misses(r.Devil)))
	case r.Devil.Loads.Or(0) < 1.5*r.Memory.Loads.Or(0):
		return fmt.Errorf("animal: calibrate: the reference \"devil\" reads %s lines a cycle, \"memory\" %s: want half as many again and more, so let one stream and the other chase", render.Number(r.Devil.Loads.Or(0)), render.Number(r.Memory.Loads.Or(0)))
	case r.Crowded.Remote.Or(0) > 0.5:
		return fmt.Errorf("animal: calibrate: the reference \"crowded\" reads %s of its lines from another node: want its memory on its own", render.Ratio(r.Crowded.Remote.Or(0)))
	case r.Memory.Remote.Or(0) > 0.5:
		return fmt.Errorf("animal: calibrate: the reference \"memory\" reads %s of its lines from another node: want its memory on its own", render.Ratio(r.Memory.Remote.Or(0)))
	case r.Far.Remote.Or(1) < 0.5:
		return fmt.Errorf("animal: calibrate: the reference \"far\" reads %s of its lines from another node: want half and more", render.Ratio(r.Far.Remote.Or(0)))
	}
	return nil
}

// waitOf is cycles per request.
func waitOf(name string, s Sample) (float64, error) {
	w, ok := s.Waits.Get()
	a, ok2 := s.Requests.Get()
	switch {
	case !ok || !ok2:
		return 0, fmt.Errorf("animal: calibrate: the reference %q: count its requests beyond private caches and the cycles it waits for them", name)
	case !(a > 0) || !(w > 0):
		return 0, fmt.Errorf("animal: calibrate: the reference %q asks for %v lines a cycle and waits %v of the time: want both above 0", name, a, w)
	}
	return w / a, nil
}
