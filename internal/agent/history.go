// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/schema"
	"homenode/internal/set"
)

// What nodes were used in past windows is kept across restarts: MAO's strategy B judges a
// node by the 95th percentile of its own past, and a restart is no reason to forget it.
//
//	mao.State ─ Histories ─▶ history.json ─▶ WithHistories ─▶ mao.State
//
// The file is of one machine: nodes and their CPUs. The rest of the state is not kept:
// bindings are put back when an agent ends, so that a new one starts without.

// historySchema is the version of the file. Readers refuse a newer one.
const historySchema = 1

// errOtherMachine is returned for a file of another machine, or of this one before
// its nodes changed.
var errOtherMachine = errors.New("it belongs to another machine")

// historyNode is what identifies a node: its id and all its CPUs, including the
// offline ones.
type historyNode struct {
	ID   int        `json:"id"`
	CPUs set.CPUSet `json:"cpus"`
}

// historyFile is the content of the file.
type historyFile struct {
	Schema  int           `json:"schema"`
	At      time.Time     `json:"at"` // end of the last window in it
	Machine []historyNode `json:"machine"`
	Nodes   []mao.History `json:"nodes"`
}

// historyNodes returns what identifies a machine: nodes and CPUs by number, as each
// history belongs to a node.
func historyNodes(m machine.Machine) []historyNode {
	nodes := make([]historyNode, 0, len(m.Nodes))
	for _, n := range m.Nodes {
		var cpus []int
		for _, c := range m.CPUs {
			if on, ok := c.Node.Get(); ok && on == n.ID {
				cpus = append(cpus, c.ID)
			}
		}
		nodes = append(nodes, historyNode{ID: n.ID, CPUs: set.FromCPUs(cpus...)})
	}
	return nodes
}

// maxFigures bounds what a file may make the agent keep. A year of windows of 10 s is
// 3 million; the default of mao's history_windows is 512.
const maxFigures = 1 << 20

// Validate returns what is invalid in a file.
func (f historyFile) Validate() error {
	if f.Schema < 1 || f.Schema > historySchema {
		return fmt.Errorf("schema %d: want 1 to %d", f.Schema, historySchema)
	}
	known := map[int]bool{}
	for i, n := range f.Machine {
		if n.ID < 0 || i > 0 && n.ID <= f.Machine[i-1].ID {
			return fmt.Errorf("node %d at position %d: ids must ascend from 0", n.ID, i)
		}
		known[n.ID] = true
	}
	figures := 0
	for i, h := range f.Nodes {
		if !known[h.Node] || i > 0 && h.Node <= f.Nodes[i-1].Node {
			return fmt.Errorf("history of node %d at position %d: ids must ascend and be the machine's", h.Node, i)
		}
		for _, u := range h.Utilisation {
			// The bound is a little above all CPUs, because two clocks may
			// disagree a little.
			if figures++; !(u >= 0 && u <= 2) {
				return fmt.Errorf("history of node %d: %v is not a utilisation", h.Node, u)
			}
		}
	}
	if figures > maxFigures {
		return fmt.Errorf("%d figures: at most %d", figures, maxFigures)
	}
	return nil
}

// decodeHistory reads a file's content.
func decodeHistory(data []byte) (historyFile, error) {
	return schema.Decode[historyFile](data, "history", historySchema)
}

// readHistory returns the histories of this machine. If there is no file, the error is
// fs.ErrNotExist.
func readHistory(path string, m machine.Machine) ([]mao.History, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	if most := int64(32 * maxFigures); !st.Mode().IsRegular() || st.Size() > most {
		return nil, fmt.Errorf("read history: %s is not a file of at most %d bytes", path, most)
	}
	data, err := unix.ReadAtMost(path, 32*maxFigures)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	f, err := decodeHistory(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if !slices.EqualFunc(f.Machine, historyNodes(m), func(a, b historyNode) bool { return a.ID == b.ID && a.CPUs.Equal(b.CPUs) }) {
		return nil, fmt.Errorf("read %s: %w: its nodes are %s", path, errOtherMachine, describe(f.Machine))
	}
	return f.Nodes, nil
}

func describe(nodes []historyNode) string {
	const most = 8
	text := ""
	for i, n := range nodes {
		if i == most {
			return text + fmt.Sprintf(", … (%d)", len(nodes))
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d (CPUs %v)", n.ID, n.CPUs)
	}
	return text
}

// writeHistory replaces the file atomically: a reader finds the old file or the new one, even
// after a crash of the machine.
func writeHistory(path string, m machine.Machine, at time.Time, nodes []mao.History) error {
	data, err := schema.Encode(historyFile{Schema: historySchema, At: at, Machine: historyNodes(m), Nodes: nodes}, "history")
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	if err := writeSynced(path+".tmp", append(data, '\n')); err != nil {
		_ = os.Remove(path + ".tmp") // half a file is useless, and the disk may be full
		return fmt.Errorf("write history: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return syncDir(dir)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write history: sync %s: %w", dir, err)
	}
	return nil
}
