// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
)

// IsTerminal says whether f can show a screen.
func IsTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// TerminalWidth is the number of columns of the terminal. It is false if the file
// is not a terminal, or does not report it.
func TerminalWidth(f *os.File) (int, bool) {
	width, _, err := term.GetSize(f.Fd())
	return width, err == nil && width > 0
}

// Run shows the screen until the user quits or the context ends.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.Colour = true
	_, err := tea.NewProgram(New(ctx, o), tea.WithContext(ctx), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil // the context has ended
	}
	return err
}

// Once is one screen as plain text, without keys and without empty lines: the
// last frame of a tape, else the first frame that has rates.
func Once(ctx context.Context, o Options, width, height int) (string, error) {
	m := New(ctx, o)
	m.w, m.h, m.still = width, height, true
	for {
		if f, ok := m.time.frame(); m.ended || ok && f.Window.Length > 0 {
			break
		}
		f, err := o.Source.Next(ctx)
		if errors.Is(err, io.EOF) {
			m.ended = true
			continue
		}
		if err != nil {
			return "", err
		}
		m.time.addFrame(f, true)
	}
	m.time.seek(len(m.time.frames) - 1)
	m.follow()
	lines := slices.DeleteFunc(m.draw().lines(m.o.Colour, m.o.ASCII), func(l string) bool { return l == "" })
	return strings.Join(lines, "\n"), nil
}
