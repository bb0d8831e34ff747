// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"homenode/internal/action"
	"homenode/internal/set"
)

// key handles one key press: its name ("enter", "ctrl+c") and its text.
func (m *Model) key(name, text string) tea.Cmd {
	if name == "ctrl+c" {
		return tea.Quit
	}
	m.said = ""
	defer m.follow()
	switch {
	case m.ask != noPrompt:
		return m.promptKey(name, text)
	case m.on == onPlan:
		return m.planKey(name)
	case m.on != onTable && m.overlayKey(name):
		return nil
	}
	if c, ok := orderKey(name); ok {
		m.order.press(c)
		return nil
	}
	if cmd, ok := m.timeKey(name); ok {
		return cmd
	}
	return m.tableKey(name)
}

// overlayKey is true if the overlay handled the key.
func (m *Model) overlayKey(name string) bool {
	switch name {
	case "esc", "q", "enter", "backspace":
		m.on, m.back, m.scroll = m.back, onTable, 0
	case "up", "k":
		m.scroll--
	case "down", "j":
		m.scroll++
	case "pgup":
		m.scroll -= m.h / 2
	case "pgdown":
		m.scroll += m.h / 2
	case "?", "i":
		if (name == "?") == (m.on == onHelp) && (name == "i") == (m.on == onInfo) {
			m.on, m.back = m.back, onTable
			return true
		}
		return false
	default:
		return false
	}
	m.scroll = max(0, m.scroll)
	return true
}

// open shows an overlay above the current one.
func (m *Model) open(s screen) {
	m.back = onTable
	if m.on == onDetail {
		m.back = onDetail
	}
	m.on, m.scroll = s, 0
}

func (m *Model) tableKey(name string) tea.Cmd {
	switch name {
	case "q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-10)
	case "pgdown":
		m.move(10)
	case "r":
		m.order.reversed = !m.order.reversed
	case "t":
		m.byCPU = !m.byCPU
	case "/":
		m.ask, m.input = askFilter, m.filter
	case "esc":
		m.filter = ""
	case "?":
		m.open(onHelp)
	case "i":
		m.open(onInfo)
	default:
		return m.workloadKey(name)
	}
	return nil
}

// workloadKey is for keys about the selected workload.
func (m *Model) workloadKey(name string) tea.Cmd {
	m.follow()
	if m.selected == "" {
		return nil
	}
	switch name {
	case "enter":
		m.open(onDetail)
	case "w":
		m.why = "unknown: no agent has decided about it"
		if m.o.Why != nil {
			m.why = m.o.Why(m.selected)
		}
		m.open(onWhy)
	case "b":
		if m.mayAct() {
			m.ask, m.input, m.target = askNodes, "", m.selected
		}
	case "u":
		if m.mayAct() {
			return m.look(action.Action{Kind: action.Unbind, Workload: m.selected})
		}
	}
	return nil
}

func (m *Model) mayAct() bool {
	if m.o.Actor == nil {
		if m.said = m.o.NoActor; m.said == "" {
			m.said = "nothing can be bound here"
		}
		return false
	}
	return true
}

// timeKey freezes the screen, and steps through past frames.
func (m *Model) timeKey(name string) (tea.Cmd, bool) {
	switch name {
	case "f", "space", " ":
		m.playing = !m.playing
		if m.playing && m.time.atEnd() && m.ended {
			m.time.seek(0) // play again
		}
		if m.playing && !m.ended {
			m.time.seek(len(m.time.frames))
		}
	case "left":
		m.playing = false
		m.time.seek(m.time.now - 1)
	case "right":
		m.playing = false
		m.time.seek(m.time.now + 1)
	case "home":
		m.playing = false
		m.time.seek(0)
	case "end":
		m.playing = !m.ended
		m.time.seek(len(m.time.frames))
	case "+", "=":
		m.o.Speed = min(m.o.Speed*2, 1024)
	case "-":
		m.o.Speed = max(min(m.o.Speed, 1024)/2, 1.0/16)
	default:
		return nil, false
	}
	return m.tick(), true
}

func (m *Model) promptKey(name, text string) tea.Cmd {
	switch name {
	case "esc":
		if m.ask == askFilter {
			m.filter = ""
		}
		m.ask = noPrompt
	case "enter":
		ask := m.ask
		m.ask = noPrompt
		if ask == askNodes {
			return m.bindTo(m.input)
		}
	case "backspace":
		if rs := []rune(m.input); len(rs) > 0 {
			m.input = string(rs[:len(rs)-1])
		}
	case "ctrl+u":
		m.input = ""
	default:
		const longest = 80
		if m.input += clean(text); text == " " {
			m.input += " "
		}
		m.input = string([]rune(m.input)[:min(longest, len([]rune(m.input)))])
	}
	if m.ask == askFilter {
		m.filter = strings.TrimSpace(m.input)
	}
	return nil
}

// bindTo reads the typed nodes, and asks for a dry run for the workload of the
// prompt: the selection may have moved to another workload.
func (m *Model) bindTo(text string) tea.Cmd {
	nodes, err := set.ParseNodes(text)
	f, _ := m.time.frame()
	_, there := find(f.Window, m.target)
	switch missing := nodes.Minus(f.Machine.NodeIDs()); {
	case !there:
		m.said = clean(m.target) + " is gone: nothing was done"
	case err != nil:
		m.said = "not a list of nodes like 0 or 0-1,3: " + clean(err.Error())
	case nodes.IsEmpty():
		m.said = "no node was named: nothing was done"
	case !missing.IsEmpty():
		m.said = fmt.Sprintf("this machine has no node %v: its nodes are %v", missing, f.Machine.NodeIDs())
	default:
		return m.look(action.Action{Kind: action.Bind, Workload: m.target, Nodes: nodes})
	}
	return nil
}

// look asks for a dry run and shows it.
func (m *Model) look(a action.Action) tea.Cmd {
	a.Reason = action.Reason{Rule: "top." + string(a.Kind), Workload: a.Workload}
	m.open(onPlan)
	m.plan = plan{action: a}
	actor, ctx := m.o.Actor, m.ctx
	return func() tea.Msg {
		lines, err := actor.Plan(ctx, a)
		return planMsg{a, lines, err}
	}
}

func (m *Model) planKey(name string) tea.Cmd {
	switch name {
	case "y":
		if !m.plan.known || m.plan.refused != "" || m.plan.applied {
			return nil
		}
		m.plan.applied = true
		m.on, m.back = m.back, onTable
		actor, ctx, a := m.o.Actor, m.ctx, m.plan.action
		m.said = clean(a.String()) + ": asking…"
		return func() tea.Msg { return appliedMsg{a, actor.Apply(ctx, a)} }
	case "esc", "n", "q", "enter", "backspace":
		m.on, m.back = m.back, onTable
		m.said = "nothing was changed"
	}
	return nil
}
