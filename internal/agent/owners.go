// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"homenode/internal/journal"
	"homenode/internal/kernel"
	names "homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/migrate"
	"homenode/internal/owner"
	"homenode/internal/owner/affinity"
	"homenode/internal/owner/cgroup"
	"homenode/internal/owner/containerd"
	"homenode/internal/owner/docker"
	"homenode/internal/owner/resctrl"
	"homenode/internal/owner/systemd"
)

// DefaultDockerMemory outlives a reboot, as the settings of Docker's containers
// do.
const DefaultDockerMemory = "/var/lib/homenode/docker.json"

// Runtimes says where container runtimes listen; "" means the default.
type Runtimes struct {
	DockerSocket     string
	DockerMemory     string // file with the containers' original settings, in case the machine crashes
	ContainerdSocket string
}

// NewMover returns a mover that no process can hold up. It moves all pages if that is
// allowed. If not, shared is false and it does not
// move pages that several processes map: the kernel would refuse every call that asks
// for them (kernel_move_pages in mm/migrate.c).
func NewMover() (m *migrate.Patient, shared bool, err error) {
	powers, err := kernel.ReadPowers(kernel.Live().Root())
	if err != nil {
		return nil, false, err
	}
	m, err = migrate.NewPatient(kernel.Live(), migrate.Config{Shared: powers.Nice()})
	return m, powers.Nice(), err
}

// OwnersWith is the chain of owners, each of which acts on its own settings:
//
//	threads ──▶ resctrl ──▶ route ─┬─▶ cgroup      unmanaged ones, and those of direct_owners
//	                               ├─▶ systemd     units
//	                               ├─▶ docker      containers
//	                               └─▶ containerd  containers that nothing above it manages
//
// Each is a journal.Link: it passes on what it does not own. OwnersWith fails if no cgroup
// can be bound.
func OwnersWith(cfg cgroup.Config, runtimes Runtimes) (journal.Link, error) {
	cgroups, err := cgroup.New(kernel.Live(), cfg)
	if err != nil {
		return nil, err
	}
	return withManagers(cfg, runtimes, cgroups)
}

// withManagers adds the managers of cgroups. A manager is not asked before it
// is needed.
func withManagers(cfg cgroup.Config, runtimes Runtimes, cgroups *cgroup.Applier) (journal.Link, error) {
	units, err := systemd.New(kernel.Live(), systemd.Config{Pages: cgroups})
	if err != nil {
		return nil, err
	}
	dockers, err := docker.New(kernel.Live(), docker.Config{Socket: runtimes.DockerSocket, Memory: runtimes.DockerMemory, Cgroups: cgroups})
	if err != nil {
		return nil, err
	}
	tasks, err := containerd.New(kernel.Live(), containerd.Config{Socket: runtimes.ContainerdSocket, Cgroups: cgroups})
	if err != nil {
		return nil, err
	}
	router, err := owner.NewRouter(kernel.Live(), owner.RouterConfig{
		Direct: cfg.DirectOwners, Cgroups: cgroups,
		Managers: map[string]owner.Manager{names.Systemd: units, names.Docker: dockers, names.Containerd: tasks},
	})
	if err != nil {
		return nil, err
	}
	return withThreads(cfg.DirectOwners, router, nil)
}

// Owners can restore all that an earlier homenode may have left: threads everywhere,
// and, if there is a cpuset, cgroups and the requests to their managers.
func Owners(directOwners []string, runtimes Runtimes) (journal.Link, error) {
	cfg := cgroup.Config{DirectOwners: directOwners}
	cgroups, why := cgroup.New(kernel.Live(), cfg)
	if why != nil {
		return withThreads(directOwners, nil, why)
	}
	return withManagers(cfg, runtimes, cgroups)
}

// withThreads adds the owners of what belongs to no cgroup: resctrl's groups, and
// threads, which an earlier homenode may have left pinned.
func withThreads(directOwners []string, next journal.Link, why error) (journal.Link, error) {
	groups, err := resctrl.New(kernel.Live(), resctrl.Config{DirectOwners: directOwners}, next, why)
	if err != nil {
		return nil, err
	}
	return affinity.New(kernel.Live(), groups, nil)
}
