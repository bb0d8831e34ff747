// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"

	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Migration prints a report for a terminal.
func Migration(w io.Writer, r migration.Report, o render.TextOptions) error {
	r = cleanMigration(r)
	p := &migrationPrinter{Terminal: o.Terminal()}
	p.Wrapped("", migrationHeadline(r))
	for _, line := range about(r) {
		p.Wrapped("  ", line)
	}
	p.Section("MEMORY BY KIND")
	p.Table(kindTable(r, p.Width))
	p.stayed(r)
	if r.Outcome != migration.Nothing {
		p.Section(paceTitle(r))
		p.Table(paceTable(r))
		p.list(sources(r.Estimate))
		p.list(calls(r))
	}
	p.List("PROBLEMS", problems(r))
	p.List("NOTES", r.Notes)
	return p.Flush(w, "report")
}

// paceTitle: a dry run achieved nothing.
func paceTitle(r migration.Report) string {
	if !r.Result.Known() {
		return "EXPECTED"
	}
	return "EXPECTED AND ACHIEVED"
}

// migrationHeadline is the answer in one sentence.
func migrationHeadline(r migration.Report) string {
	to := nodes(r.To)
	target := render.Or(r.Target, "a workload")
	switch res, _ := r.Result.Get(); r.Outcome {
	case migration.Nothing:
		return target + ": nothing to do: " + whyNothing(r)
	case migration.Planned:
		return fmt.Sprintf("%s: dry run: %s would be moved to %s", target, r.Estimate.Bytes.String(), to)
	case migration.Complete:
		return fmt.Sprintf("%s: complete: %s moved to %s", target, res.Moved().String(), to)
	default:
		text := fmt.Sprintf("%s: partly done: %s of %s moved to %s", target, res.Moved().String(), asked(r).String(), to)
		if res.Stopped != "" {
			text += "; stopped: " + res.Stopped
		}
		return text
	}
}

// whyNothing there is nothing to do.
func whyNothing(r migration.Report) string {
	switch {
	case r.LeaveShared && r.Task().Elsewhere(r.From, r.To) == 0 && r.Before.Elsewhere(r.From, r.To) > 0:
		return "the memory elsewhere is also used by other processes, and is left"
	case r.Before.Elsewhere(r.From, r.To) > 0:
		return "the memory elsewhere was not accessed"
	case r.From.IsEmpty():
		return "all of it is on " + nodes(r.To)
	}
	return "none of it is on " + nodes(r.From)
}

// asked is the memory that was to be moved.
func asked(r migration.Report) unit.Bytes {
	if r.Mode == migration.Hot {
		return r.Estimate.Bytes
	}
	return r.Task().Elsewhere(r.From, r.To)
}

// about says how and for which target it was done.
func about(r migration.Report) []string {
	from := "every other node"
	if !r.From.IsEmpty() {
		from = nodes(r.From)
	}
	way := fmt.Sprintf("from %s to %s, mode %s", from, nodes(r.To), r.Mode)
	if r.Mode != migration.Freeze {
		way += ", " + limits(r)
	}
	who := render.Count(r.Before.Processes, "process") + ", " + render.Count(r.Before.Files, "file")
	if foreign, ok := r.Before.Foreign.Get(); ok && foreign > 0 {
		who += "; other processes use " + foreign.String() + " of it too"
		if r.LeaveShared {
			who += ", which is left"
		}
	} else if !ok {
		who += "; how much of it other processes use too is unknown"
	}
	if r.Before.Unread > 0 {
		who += "; " + render.Count(r.Before.Unread, "process") + " could not be read"
	}
	if r.Before.Swapped > 0 {
		who += "; " + r.Before.Swapped.String() + " are swapped out, on no node"
	}
	return []string{way, who, "times by: " + render.Or(r.Clock, unknown) + ", " + render.How(r.How)}
}

func limits(r migration.Report) string {
	text := "as fast as it goes"
	if r.Rate > 0 {
		text = "at most " + render.Rate(float64(r.Rate))
	}
	if r.MaxStall > 0 {
		return text + ", no call longer than " + render.Span(r.MaxStall)
	}
	return text + ", calls of any length"
}

// reasons explain the kernel's errors for pages that it did not move (move_pages(2),
// and mm/migrate.c).
func reasons(errno string) string {
	return map[string]string{
		"EACCES": "several processes map them, and moving them needs CAP_SYS_NICE; or the cpuset does not allow the node",
		"EBUSY":  "another task held them: pinned, locked or being written",
		"ENOMEM": "the node had no room for them",
		"EFAULT": "they are the zero page, or their mapping went away",
		"EIO":    "they are dirty, and could not be written back",
		"EINVAL": "their file system cannot move them",
		"EAGAIN": "they were in use at each attempt",
		"ENOENT": "they were gone",
	}[errno]
}

// stayed lists what was not moved, by kind and reason.
func (p *migrationPrinter) stayed(r migration.Report) {
	res, _ := r.Result.Get()
	for _, k := range res.Kinds {
		for _, f := range k.Failed {
			text := f.Reason
			if why := reasons(f.Reason); why != "" {
				text += ": " + why
			}
			if p.first("stayed") {
				p.Line("")
				p.Line("  What stayed, and why")
			}
			p.Hanging(fmt.Sprintf("    %-7s  %10s  ", k.Kind, f.Bytes.String()), text)
		}
	}
}

// sources say how each expectation is known; equal sources are printed once.
func sources(e migration.Estimate) (out []string) {
	type entry struct{ what, text string }
	var all []entry
	add := func(what string, how unit.Source, from string) {
		text := how.String()
		if from != "" {
			text += ": " + from
		}
		i := slices.IndexFunc(all, func(x entry) bool { return x.text == text })
		if i < 0 {
			all = append(all, entry{what, text})
			return
		}
		all[i].what += ", " + what
	}
	add("time", e.Seconds.How, e.Seconds.From)
	add("CPU time", e.CPUSeconds.How, e.CPUSeconds.From)
	add("bandwidth", e.BandwidthShare.How, e.BandwidthShare.From)
	for _, x := range all {
		out = append(out, x.what+" expected: "+x.text)
	}
	return out
}

// calls say for how long the target had to wait, and how pages were chosen.
func calls(r migration.Report) (out []string) {
	if h, ok := r.Heat.Get(); ok {
		out = append(out, heat(h)...)
	}
	res, ok := r.Result.Get()
	if !ok {
		return out
	}
	text := "longest call " + render.Span(res.Longest)
	if r.MaxStall > 0 {
		text += " of at most " + render.Span(r.MaxStall)
	}
	out = append(out, fmt.Sprintf("%s; %s by %s, %s a call at the end", text, render.Count(res.Calls, "call"), render.Count(res.Workers, "worker"), render.Count(res.Batch, "page")))
	if res.Over > 0 {
		out = append(out, render.Count(res.Over, "call")+" took longer than the limit: "+render.Or(res.OverWhy, "no reason is known"))
	}
	if res.Retried > 0 {
		out = append(out, render.Count(res.Retried, "page")+" were busy at first, and tried again")
	}
	return out
}

func heat(h migration.Heat) []string {
	out := []string{fmt.Sprintf("accessed within %s: %s, by %s (%s), told apart by %s", render.Span(h.For), h.Bytes.String(), render.Or(h.Source, unknown), render.How(h.How), render.Or(h.Unit, unknown))}
	for _, o := range h.Others {
		out = append(out, "not used: "+o)
	}
	return out
}

// problems are those of reading and of moving, each once.
func problems(r migration.Report) (out []string) {
	add := func(list []string) {
		for _, s := range list {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	add(r.Before.Problems)
	if res, ok := r.Result.Get(); ok {
		add(res.Problems)
	}
	if after, ok := r.After.Get(); ok {
		add(after.Problems)
	}
	return out
}

type migrationPrinter struct {
	render.Terminal
	seen []string
}

// first is true once for each name.
func (p *migrationPrinter) first(name string) bool {
	if slices.Contains(p.seen, name) {
		return false
	}
	p.seen = append(p.seen, name)
	return true
}

func (p *migrationPrinter) list(lines []string) {
	for _, l := range lines {
		p.Wrapped("  ", l)
	}
}
