// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the guest when homenode is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
