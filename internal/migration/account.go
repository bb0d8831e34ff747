// SPDX-License-Identifier: Apache-2.0

package migration

import "homenode/internal/unit"

// Account is what happened to each byte of the task: Moved, Gone, Failed and Stayed add
// up to Task and New.
type Account struct {
	Task   unit.Bytes // by the census before
	Moved  unit.Bytes
	Gone   unit.Bytes // freed, brought home by the kernel, or ended with its process
	Failed unit.Bytes // tried, and not moved
	Stayed unit.Bytes // elsewhere by the census after, and not tried
	New    unit.Bytes // beyond Task: allocated meanwhile
}

// Settle completes a result. A byte of the task that is in none of the result's counts
// and not elsewhere afterwards is gone: its process ended or freed it before the mover
// reached it. left names the reasons of Failed that are no part of the task.
func (r Report) Settle(res *Result, after Census, left func(reason string) bool) Account {
	a := Account{Task: r.Task().Elsewhere(r.From, r.To)}
	open := map[Kind]unit.Bytes{}
	var aside unit.Bytes
	for _, kind := range Kinds() {
		k := res.kind(kind)
		task, _ := r.Task().Of(kind)
		failed, onPurpose := k.failed(left)
		there, _ := after.Of(kind)
		elsewhere := max(0, there.Elsewhere(r.From, r.To)-failed-onPurpose)
		a.Moved, a.Gone, a.Failed, aside = a.Moved+k.Moved, a.Gone+k.Gone, a.Failed+failed, aside+onPurpose
		open[kind] = max(0, task.Elsewhere(r.From, r.To)-k.Moved-k.Gone-failed-elsewhere)
	}
	a.Stayed = max(0, after.Elsewhere(r.From, r.To)-a.Failed-aside)
	rest := a.Task - a.Moved - a.Gone - a.Failed - a.Stayed
	if rest < 0 {
		a.New = -rest
		return a
	}
	a.Gone += rest
	res.gone(rest, open)
	return a
}

// gone adds bytes to the kinds that are open. A page may have changed its kind (a split
// huge page): bytes that fit in no open kind count as private memory.
func (r *Result) gone(rest unit.Bytes, open map[Kind]unit.Bytes) {
	for _, kind := range Kinds() {
		if b := min(rest, open[kind]); b > 0 {
			r.Of(kind).Gone += b
			rest -= b
		}
	}
	if rest > 0 {
		r.Of(Anon).Gone += rest
	}
}

// kind is the result of a kind; it does not create one.
func (r *Result) kind(k Kind) KindResult {
	for _, one := range r.Kinds {
		if one.Kind == k {
			return one
		}
	}
	return KindResult{Kind: k}
}

// failed is what stayed although it was tried, and what was left on purpose.
func (k KindResult) failed(left func(reason string) bool) (failed, onPurpose unit.Bytes) {
	for _, f := range k.Failed {
		if left(f.Reason) {
			onPurpose += f.Bytes
		} else {
			failed += f.Bytes
		}
	}
	return failed, onPurpose
}
