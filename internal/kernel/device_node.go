// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// DeviceKinds are how a device may be named, as numactl names them.
var DeviceKinds = []string{"netdev", "file", "ip", "block", "pci"}

// NodeOfDevice is the node that a device is attached to; unknown where the kernel does not
// say.
//
//	netdev  eth0                    /sys/class/net/eth0 ─▶ the device's numa_node
//	block   nvme0n1, /dev/nvme0n1   /sys/class/block/nvme0n1 ─▶ likewise
//	pci     3b:00.0, 0000:3b:00.0   /sys/bus/pci/devices/0000:3b:00.0 ─▶ likewise
//	file    /srv/data               the block device below its file system
//	ip      192.0.2.1               the interface of the route there; no packet is sent
//
// Partitions, and bridges on the way, have no numa_node: their parents do. Volumes of LVM
// and the like are where the first device below them is.
func NodeOfDevice(root Root, kind, name string) (unit.Opt[int], error) {
	dir, err := deviceFolder(root, kind, name)
	if err != nil {
		return unit.None[int](), fmt.Errorf("%s:%s: %w", kind, name, err)
	}
	node, err := nodeAbove(root, dir, 0)
	if err != nil {
		return unit.None[int](), fmt.Errorf("%s:%s: %w", kind, name, err)
	}
	return node, nil
}

func deviceFolder(root Root, kind, name string) (string, error) {
	switch kind {
	case "netdev":
		return classFolder(root, "net", name, "'ip link' lists the interfaces")
	case "block":
		return classFolder(root, "block", strings.TrimPrefix(name, "/dev/"), "'lsblk' lists the block devices")
	case "pci":
		address, ok := pciAddress(name)
		if !ok {
			return "", fmt.Errorf("it is no PCI address: want one like 0000:3b:00.0 or 3b:00.0 (%w)", ErrMalformed)
		}
		dir := "/sys/bus/pci/devices/" + address
		if !isThere(root, dir) {
			return "", fmt.Errorf("there is no such device: 'lspci -D' lists them (%w)", ErrGone)
		}
		return dir, nil
	case "file":
		return fileFolder(root, name)
	case "ip":
		return routeFolder(root, name)
	}
	return "", fmt.Errorf("unknown kind of device: want %s (%w)", strings.Join(DeviceKinds, ", "), ErrMalformed)
}

func isThere(root Root, dir string) bool {
	_, err := os.Stat(root.Path(dir))
	return err == nil
}

func classFolder(root Root, class, name, list string) (string, error) {
	if name == "" || strings.Contains(name, "/") || name == "." || name == ".." {
		return "", fmt.Errorf("it is no name of a device: %s (%w)", list, ErrMalformed)
	}
	dir := "/sys/class/" + class + "/" + name
	if !isThere(root, dir) {
		return "", fmt.Errorf("there is no such device: %s (%w)", list, ErrGone)
	}
	return dir, nil
}

// pciAddress completes an address. numactl also takes a colon before the function.
func pciAddress(name string) (string, bool) {
	if i := strings.LastIndexAny(name, ":."); i > 0 {
		name = name[:i] + "." + name[i+1:]
	}
	if strings.Count(name, ":") == 1 {
		name = "0000:" + name
	}
	var domain, bus, device, function uint32
	if n, err := fmt.Sscanf(name, "%x:%x:%x.%x", &domain, &bus, &device, &function); n != 4 || err != nil {
		return "", false
	}
	full := fmt.Sprintf("%04x:%02x:%02x.%x", domain, bus, device, function)
	return full, strings.EqualFold(full, name)
}

func fileFolder(root Root, name string) (string, error) {
	var st sys.Stat_t
	if err := sys.Stat(name, &st); err != nil {
		return "", fmt.Errorf("look at the file: %w", err)
	}
	dev := uint64(st.Dev) //nolint:unconvert // it is 32 bits on some architectures
	major, minor := sys.Major(dev), sys.Minor(dev)
	dir := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	if !isThere(root, dir) {
		return "", fmt.Errorf("its file system is on no block device (a network's, tmpfs, overlay …): name the device or a node (%w)", ErrNotSupported)
	}
	return dir, nil
}

// routeFolder connects a socket for datagrams, which sends none, and looks which
// interface has its address.
func routeFolder(root Root, name string) (string, error) {
	if net.ParseIP(name) == nil {
		return "", fmt.Errorf("it is no address: want one like 192.0.2.1 or 2001:db8::1 (%w)", ErrMalformed)
	}
	c, err := net.Dial("udp", net.JoinHostPort(name, "9"))
	if err != nil {
		return "", fmt.Errorf("no route there: %w", err)
	}
	defer c.Close()
	from, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return "", ErrNotSupported
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addresses, _ := i.Addrs() // one that is gone has none
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(from.IP) {
				return classFolder(root, "net", i.Name, "")
			}
		}
	}
	return "", fmt.Errorf("no interface has the address %s of the route there (%w)", from.IP, ErrGone)
}

// mostVolumes bounds volumes that stand on volumes.
const mostVolumes = 8

// nodeAbove looks for numa_node in the device's folder and in those above it.
func nodeAbove(root Root, dir string, depth int) (unit.Opt[int], error) {
	real, err := filepath.EvalSymlinks(root.Path(dir))
	if err != nil {
		return unit.None[int](), err
	}
	if below := firstBelow(real); below != "" && depth < mostVolumes {
		return nodeAbove(root, "/sys/class/block/"+below, depth+1)
	}
	stop := root.Path("/sys")
	if strings.Contains(strings.TrimPrefix(real, stop), "/virtual/") {
		return unit.None[int](), fmt.Errorf("it is virtual, and attached to no node: name a real device, or a node (%w)", ErrNotSupported)
	}
	for at := real; len(at) > len(stop); at = path.Dir(at) {
		data, err := unix.ReadAtMost(at+"/numa_node", 64)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return unit.None[int](), err
		}
		node, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			return unit.None[int](), fmt.Errorf("parse %s/numa_node: %w (%w)", at, err, ErrMalformed)
		}
		return unit.OptOf(node, node >= 0), nil
	}
	return unit.None[int](), nil
}

// firstBelow is the first device that a volume stands on; "" if it is no volume.
func firstBelow(dir string) string {
	entries, err := os.ReadDir(dir + "/slaves")
	if err != nil || len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}
