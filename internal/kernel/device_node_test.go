// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
)

// deviceTree has a network card on node 1, a disk with a partition on node 0, a volume on
// that partition, a card whose node the firmware does not tell, and a virtual interface.
func deviceTree(t *testing.T) Root {
	root := kerneltest.Tree(t, kerneltest.Files{
		"/sys/devices/pci0000:3a/0000:3a:00.0/numa_node":                   "1\n",
		"/sys/devices/pci0000:3a/0000:3a:00.0/net/eth0/mtu":                "1500\n",
		"/sys/devices/pci0000:00/0000:00:02.0/numa_node":                   "0\n",
		"/sys/devices/pci0000:00/0000:00:02.0/nvme/nvme0n1/nvme0n1p1/size": "9\n",
		"/sys/devices/pci0000:00/0000:00:03.0/numa_node":                   "-1\n",
		"/sys/devices/pci0000:00/0000:00:03.0/net/eth1/mtu":                "1500\n",
		"/sys/devices/virtual/net/lo/mtu":                                  "65536\n",
		"/sys/devices/virtual/block/dm-0/slaves/nvme0n1p1":                 "",
	})
	for link, to := range map[string]string{
		"/sys/class/net/eth0":               "../../devices/pci0000:3a/0000:3a:00.0/net/eth0",
		"/sys/class/net/eth1":               "../../devices/pci0000:00/0000:00:03.0/net/eth1",
		"/sys/class/net/lo":                 "../../devices/virtual/net/lo",
		"/sys/class/block/nvme0n1p1":        "../../devices/pci0000:00/0000:00:02.0/nvme/nvme0n1/nvme0n1p1",
		"/sys/class/block/dm-0":             "../../devices/virtual/block/dm-0",
		"/sys/bus/pci/devices/0000:3a:00.0": "../../../devices/pci0000:3a/0000:3a:00.0",
	} {
		if err := os.MkdirAll(filepath.Dir(root.Path(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, root.Path(link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestNodeOfDevice(t *testing.T) {
	root := deviceTree(t)
	for name, want := range map[string]int{
		"netdev:eth0": 1, "netdev:eth1": -1, "block:nvme0n1p1": 0, "block:/dev/nvme0n1p1": 0, "block:dm-0": 0, "pci:3a:00.0": 1, "pci:0000:3A:00:0": 1,
	} {
		kind, device, _ := strings.Cut(name, ":")
		if got, err := NodeOfDevice(root, kind, device); err != nil || got.Or(-1) != want {
			t.Errorf("%s: %v, %v, want %d", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"netdev:eth9": "ip link", "netdev:../x": "ip link", "netdev:lo": "virtual", "block:": "lsblk", "pci:99:00.0": "lspci", "pci:eth0": "0000:3b:00.0", "pci:+1:00.0": "0000:3b:00.0",
		"file:/no/such/file": "no such file", "file:/proc/self/stat": "no block device", "ip:host": "192.0.2.1", "usb:1": "netdev, file, ip, block, pci",
	} {
		kind, device, _ := strings.Cut(name, ":")
		if got, err := NodeOfDevice(root, kind, device); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), name+": ") || got.Known() {
			t.Errorf("%s: %v, %v, want %q", name, got, err, want)
		}
	}
}
