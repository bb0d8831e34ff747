// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"homenode/internal/set"
)

// ErrCalibration means that the lab credits memory to the wrong node.
var ErrCalibration = errors.New("the lab's node map is wrong")

const calibrationPages = 64

// touched is the output of `homenode-load touch`: lines read of pages bound to a node,
// and DRAM accesses counted meanwhile, by home node.
type touched struct {
	Node  int      `json:"node"`
	Lines uint64   `json:"lines"`
	DRAM  []uint64 `json:"dram"`
}

// Flat is a note if the guest's kernel was told to hide the nodes: then memory cannot be
// bound to a node, and the map cannot be checked. Otherwise it is "".
func Flat(cmdline []byte) string {
	for _, arg := range strings.Fields(string(cmdline)) {
		if arg == flatArg {
			return "the kernel hides the nodes (" + flatArg + "): not calibrated; the test that memory is counted on its node was skipped"
		}
	}
	return ""
}

// Calibrate runs in the guest. For every node with memory it reads pages bound to the
// node and asks the PMU on which node they were counted. It leaves the model off.
func Calibrate(nodes set.NodeSet) error {
	if err := load("control", "on"); err != nil {
		return err
	}
	var errs []error
	for node := range nodes.All() {
		errs = append(errs, calibrateNode(node))
	}
	errs = append(errs, load("control", "off"))
	return errors.Join(errs...)
}

func load(args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.Command("homenode-load", args...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run homenode-load %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

func calibrateNode(node int) error {
	out, err := exec.Command("homenode-load", "touch", "--node", fmt.Sprint(node), "--pages", fmt.Sprint(calibrationPages)).Output()
	if err != nil {
		return fmt.Errorf("touch pages of node %d: %w", node, err)
	}
	t, err := parseTouched(out)
	if err != nil {
		return err
	}
	return checkTouched(t, node)
}

// parseTouched refuses a count that was not taken (null): it is not 0.
func parseTouched(out []byte) (touched, error) {
	var t struct {
		touched
		DRAM []*uint64 `json:"dram"`
	}
	if err := json.Unmarshal(out, &t); err != nil {
		return touched{}, fmt.Errorf("parse answer of homenode-load touch %.80q: %w", out, err)
	}
	for node, n := range t.DRAM {
		if n == nil {
			return touched{}, fmt.Errorf("parse answer of homenode-load touch %.80q: DRAM of node %d was off the PMU for a while", out, node)
		}
		t.touched.DRAM = append(t.touched.DRAM, *n)
	}
	return t.touched, nil
}

// checkTouched requires every line on its own node, and next to nothing elsewhere.
// Accesses of the kernel and of the load program are counted too: they may be half of the
// lines on the node, and a quarter of the lines elsewhere. A wrong map puts every line
// elsewhere.
func checkTouched(t touched, node int) error {
	if t.Lines == 0 || node >= len(t.DRAM) {
		return fmt.Errorf("calibrate node %d: %d lines read, %d nodes counted: %w", node, t.Lines, len(t.DRAM), ErrCalibration)
	}
	var elsewhere uint64
	for n, count := range t.DRAM {
		if n != node {
			elsewhere += count
		}
	}
	own := t.DRAM[node]
	if own < t.Lines*97/100 || own > t.Lines*3/2 || elsewhere > t.Lines/4 {
		return fmt.Errorf("calibrate node %d: %d lines read, DRAM accesses by node %v: %w", node, t.Lines, t.DRAM, ErrCalibration)
	}
	return nil
}
