// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/actuate"
	"homenode/internal/agent"
)

// Close ends moves, releases the journal, and returns lines that say what stays bound.
func (h *Host) Close() []string {
	h.mu.Lock()
	was, moves := h.closed, h.moving
	h.closed = true // no moves begin after this
	h.mu.Unlock()
	if was {
		return nil
	}
	if moves != nil { // they need the journal
		moves.cancel()
		<-moves.done
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reader.Close()
	if h.journal == nil {
		return nil
	}
	lines := h.stays()
	if err := errors.Join(h.journal.Compact(), h.journal.Close()); err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

// stays lists what is left as it is, and the command that restores it.
func (h *Host) stays() []string {
	var names []string
	for _, e := range h.journal.Outstanding() {
		if !slices.Contains(names, e.Workload) {
			names = append(names, e.Workload)
		}
	}
	slices.Sort(names)
	lines := h.unfinished(names)
	if len(names) == 0 {
		return lines
	}
	restore := "homenode restore"
	if h.cfg.StateDir != agent.DefaultStateDir {
		restore += " --state " + h.cfg.StateDir
	}
	return append(lines, fmt.Sprintf("still bound: %s: '%s' puts them back", strings.Join(names, ", "), restore))
}

// unfinished lists the actions that were begun and not finished, and those that were
// not begun. The settings of the bound workloads remain in part.
func (h *Host) unfinished(bound []string) []string {
	var lines []string
	for _, j := range h.loop.Jobs().Jobs {
		holds := slices.Contains(bound, j.Workload)
		if _, there := h.last.Workload(j.Workload); !there && !holds {
			continue // it has ended
		}
		if how := left(j.Stage, holds); how != "" {
			lines = append(lines, j.Workload+": "+how)
		}
	}
	for _, a := range h.wanted {
		lines = append(lines, fmt.Sprintf("%v: not begun, nothing was changed for it", a))
	}
	return lines
}

// left says in which state a job was left; "" if it was finished.
func left(s actuate.Stage, bound bool) string {
	switch {
	case s == actuate.StageAhead:
		return "its pages were moving first, and its CPUs are not set"
	case s == actuate.StageCPUs && bound:
		return "its CPUs are set, its pages had not begun to move and its memory nodes are not set"
	case s == actuate.StageCPUs:
		return "its CPUs were to be set and are not set"
	case s == actuate.StagePages || s == actuate.StageMems:
		return "its CPUs are set, its pages had not all moved and its memory nodes are not set"
	case s == actuate.StageRestoring && bound:
		return "not all of its earlier settings were put back"
	}
	return ""
}
