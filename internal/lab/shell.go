// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Shell boots a guest whose prompt is on this terminal, and waits for its end.
func Shell(ctx context.Context, o Options) error {
	g := &Guest{Shape: o.Shape, Dir: o.Dir}
	defer g.removeDir()
	if err := g.prepare(o); err != nil {
		return err
	}
	args := qemuArgs(bootPlan{assets: o.Assets, shape: o.Shape, dir: g.Dir, cgroup: o.Cgroup, flat: o.Flat, hmat: o.HMAT, shell: true})
	cmd := exec.CommandContext(ctx, o.Assets.QEMU, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run QEMU: %w", err)
	}
	return nil
}
