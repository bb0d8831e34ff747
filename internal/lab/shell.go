// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Shell boots a guest with its prompt on this terminal, and waits for its end.
func Shell(ctx context.Context, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	g := &Guest{Shape: o.Shape, Dir: o.Dir}
	defer g.removeDir()
	if err := g.prepare(o); err != nil {
		return err
	}
	plan := o.plan(g.Dir)
	plan.shell = true
	cmd := exec.CommandContext(ctx, o.Assets.QEMU, qemuArgs(plan)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	defer plainNewlines(ctx)()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run QEMU: %w", err)
	}
	return nil
}

// plainNewlines keeps the terminal from putting a carriage return before each newline,
// until the returned function is called. The guest's terminal has already done that
// where it should, and a program that draws there (homenode top) moves its cursor down
// with newlines. QEMU switches off the rest, but not this (qemu_chr_set_echo_stdio,
// chardev/char-stdio.c). Without a terminal or stty it does nothing.
func plainNewlines(ctx context.Context) (back func()) {
	stty := func(arg string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "stty", arg)
		cmd.Stdin = os.Stdin
		return cmd.Output()
	}
	was, err := stty("-g")
	if err != nil {
		return func() {}
	}
	_, _ = stty("-onlcr")
	ctx = context.WithoutCancel(ctx)
	return func() { _, _ = stty(strings.TrimSpace(string(was))) }
}
