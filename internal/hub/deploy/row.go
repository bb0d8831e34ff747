// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"io"

	"homenode/internal/dataset"
	"homenode/internal/model/gain"
	"homenode/internal/rollout"
	"homenode/internal/store"
	"homenode/internal/unit"
)

// Compared is the event that says what the rollout found out: the one in which the gain was proven, or
// else the last in which bound hosts were compared with others.
func (r Rollout) Compared() (found rollout.Event, ok bool) {
	for _, e := range r.State.Events {
		if e.Evidence == nil {
			continue
		}
		if found, ok = e, true; e.Code == rollout.Proven {
			break
		}
	}
	return found, ok
}

// firstBin is the bin from which the first replica was bound; 0: none was.
func (r Rollout) firstBin() int {
	for _, e := range r.State.Events {
		if e.Code == rollout.Starts {
			return e.Bin
		}
	}
	return 0
}

// learnable says why a model of gains cannot learn from a rollout; "" if it can.
func (r Rollout) learnable() string {
	e, compared := r.Compared()
	switch {
	case !r.State.Ended():
		return "it has not ended"
	case r.Indicator != Latency:
		return fmt.Sprintf("it compared %s, and a model predicts the latency", r.Indicator)
	case !compared || !e.Evidence.Halves[0].Known() || !e.Evidence.Halves[1].Known():
		return "it has no comparison of two halves of the bound hosts: it ended before there was one, or an earlier version made it"
	case r.How != unit.HowMeasured && r.How != unit.HowModelled:
		return "its latency was " + r.How.String() + ", not measured"
	}
	return ""
}

// featuresOf asks for what a rollout's service showed before anything was bound.
func (r Rollout) featuresOf() store.Question {
	return store.Question{Topic: store.Features, Service: r.Service(), From: r.Began, Until: r.At(r.firstBin()), Most: 1}
}

// row is what a model of gains learns from a rollout that ended: what its service showed before,
// and what binding brought. number reads a column of featuresOf's answer.
func (r Rollout) row(number func(column string) (float64, bool)) gain.Row {
	e, _ := r.Compared()
	source := gain.Measured
	if r.How == unit.HowModelled {
		source = gain.Lab
	}
	some := func(column string) *float64 {
		v, ok := number(column)
		if !ok {
			return nil
		}
		return &v
	}
	saved := func(effect unit.Opt[float64]) *float64 {
		v := -effect.Or(0)
		return &v
	}
	name := gain.Hashed("service", r.Service())
	return gain.Row{
		Server: gain.Hashed("rollout", r.Service()+r.Began.UTC().String()), Service: name, Replica: gain.Hashed("rollout of", r.Service()+r.Began.UTC().String()), Kind: name,
		Source: source, Machine: "fleet", Seed: r.State.Plan.Seed,
		MBW: some(gain.MBW), MSR: some(gain.MSR), NPMR: some(gain.NPMR), RMBR: some(gain.RMBR), CPU: some(gain.CPU), IPC: some(gain.IPC), MPKI: some(gain.MPKI),
		CPUOfNode: some(gain.CPUOfNode), Busy: some(gain.Busy), Idlest: some(gain.Idlest),
		Windows:     int32(e.Bin - r.firstBin()),
		GainLatency: saved(e.Evidence.Halves[0]), GainLatencyAgain: saved(e.Evidence.Halves[1]),
	}
}

// Rows are what a model of gains learns from all rollouts that ended, by service, and why it learns
// nothing from others.
func Rows(ctx context.Context, f *Folder, s Asker) (rows []gain.Row, why map[string]string, err error) {
	all, err := f.All()
	if err != nil {
		return nil, nil, err
	}
	why = map[string]string{}
	for _, r := range all {
		if no := r.learnable(); no != "" {
			why[r.Service()] = no
			continue
		}
		t, err := s.Ask(ctx, r.featuresOf())
		if err != nil {
			return nil, nil, err
		}
		if len(t.Rows) == 0 {
			why[r.Service()] = "the status database has no features from before it"
			continue
		}
		rows = append(rows, r.row(func(column string) (float64, bool) { return t.Number(t.Rows[0], column) }))
	}
	return rows, why, nil
}

// WriteRows writes rows as a file for 'homenode-model gain'.
func WriteRows(to io.Writer, rows []gain.Row, version string) error {
	return gain.WriteRows(to, rows, []dataset.KeyValue{
		{Key: "homenode.commit", Value: version}, {Key: "homenode.command", Value: "homenode-hub deploy rows"},
		{Key: "homenode.gain", Value: "of rollouts: bound hosts against others, each against itself before; two halves of the bound hosts"},
	})
}
