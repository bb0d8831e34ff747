// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Guests are the values of Options.Guest.
const (
	Busybox = "busybox"
	// Debian boots Debian 12 with systemd and containerd, from a disk.
	Debian = "debian"
)

// Personalities are the values of Options.Personality: what lab/pmu/personalities.c has
// the PMUs of, and lab/guest/cpuinfo the description.
var Personalities = []string{"sapphire-rapids", "zen-4", "neoverse-n2"}

// Limits of a boot by the guest's own clock. A busybox guest answers after some 3 s;
// systemd and containerd start some hundred programs.
const (
	busyboxLimit = 2 * time.Minute
	debianLimit  = 10 * time.Minute
)

// complete fills in defaults, and refuses options that cannot be booted.
func (o Options) complete() (Options, error) {
	if o.Cgroup == "" {
		o.Cgroup = "v2"
	}
	if o.Guest == "" {
		o.Guest = Busybox
	}
	limit := busyboxLimit
	switch o.Guest {
	case Busybox:
		if o.Network {
			return o, fmt.Errorf("boot lab: guest %s has no network: use guest %s", Busybox, Debian)
		}
	case Debian:
		limit = debianLimit
		if err := o.checkDebian(); err != nil {
			return o, err
		}
	default:
		return o, fmt.Errorf("boot lab: guest is %q: want %s or %s", o.Guest, Busybox, Debian)
	}
	if o.Personality != "" && !slices.Contains(Personalities, o.Personality) {
		return o, fmt.Errorf("boot lab: personality is %q: want one of %s", o.Personality, strings.Join(Personalities, ", "))
	}
	if o.Timeout == 0 {
		o.Timeout = limit
	}
	if o.IdleRate == 0 {
		o.IdleRate = 1
	}
	return o, nil
}

func (o Options) checkDebian() error {
	if o.Cgroup != "v2" {
		return fmt.Errorf("boot lab: cgroup %s is not offered with guest %s: its systemd mounts cgroup v2", o.Cgroup, Debian)
	}
	if _, err := os.Stat(o.Assets.Debian); err != nil {
		return fmt.Errorf("find lab file %s: run 'make lab-debian' first: %w", o.Assets.Debian, ErrNotInstalled)
	}
	return nil
}

// debianSerial identifies the disk for lab/guest/init.
const debianSerial = "homenode-root"

// debianArgs are the disk, whose writes QEMU keeps in an unnamed file, the bus that the disk
// is on, and the network card if there is one. They come last, so that the other disks keep their
// names.
func debianArgs(p bootPlan) []string {
	bus := ""
	if !p.hmat {
		bus = ",bus=near"
	}
	args := []string{"-drive", "file=" + p.assets.Debian + ",format=raw,if=none,id=root,snapshot=on", "-device", "virtio-blk-pci,drive=root,serial=" + debianSerial + bus}
	if p.net {
		args = append(args, "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"+bus)
	}
	return args
}

// Check returns what Boot would refuse, before anything is started.
func (o Options) Check() error {
	_, err := o.complete()
	return err
}
