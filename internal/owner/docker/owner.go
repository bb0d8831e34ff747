// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/owner"
	"homenode/internal/set"
)

// DefaultSocket is where Docker listens.
const DefaultSocket = "/run/docker.sock"

// Config has the addresses of Docker.
type Config struct {
	Socket string // "": DefaultSocket
	// Memory is the file that keeps what was replaced, on a disk that outlives a boot.
	// "": after a crash of the machine, containers stay as they were set.
	Memory  string
	Cgroups owner.Cgroups
}

// Owner is the journal.Owner of Docker's containers.
type Owner struct {
	cfg    Config
	client *client
	layout cgroup.Layout
	boot   string // its id
	buf    unix.Buffer
}

// New acts on the running kernel's containers: it needs the token that only kernel.Live
// makes. It does not ask Docker before there is something to do.
func New(live kernel.LiveToken, cfg Config) (*Owner, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on Docker's containers: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	return newOwner(live.Root(), cfg)
}

func newOwner(root kernel.Root, cfg Config) (*Owner, error) {
	layout, err := cgroup.Find(root)
	if err != nil {
		return nil, err
	}
	boot, err := kernel.BootID(root)
	if err != nil {
		return nil, err
	}
	if cfg.Socket == "" {
		cfg.Socket = DefaultSocket
	}
	return &Owner{cfg: cfg, client: newClient(cfg.Socket), layout: layout, boot: boot}, nil
}

// names are Docker's names for a cgroup's files.
func names(file string) string {
	return map[string]string{cgroup.CPUsFile: "CpusetCpus", cgroup.MemsFile: "CpusetMems"}[file]
}

const prefix = "docker/"

// container is the id of a setting's container.
func container(s journal.Setting) (id string, ok bool) {
	id, ok = strings.CutPrefix(s.Name(), prefix)
	return id, ok && s.Kind() == journal.OfContainer && id != "" && names(s.File) != ""
}

// Names reports whether a setting belongs to a container of Docker.
func (o *Owner) Names(s journal.Setting) bool {
	_, ok := container(s)
	return ok
}

// Plan lists the container settings that a step changes. A cgroup inside a container is
// not Docker's to set.
func (o *Owner) Plan(_ context.Context, step action.Step) ([]journal.Change, error) {
	c, err := o.cfg.Cgroups.Fits(step)
	if err == nil && step.Kind == action.SetMems {
		err = owner.RefuseSlowMove(o.layout, step, owner.MostElsewhere, "Docker and runc")
	}
	if err != nil {
		return nil, err
	}
	id := o.layout.ContainerOf(step.Workload, &o.buf).ID
	d, err := o.client.inspect(id)
	if err != nil {
		return nil, fmt.Errorf("act on %s: %w", step.Workload, err)
	}
	if d.State.Pid == 0 {
		return nil, fmt.Errorf("act on %s: Docker says that container %s does not run (%w)", step.Workload, id, kernel.ErrGone)
	}
	own, err := o.layout.CgroupOf(d.State.Pid, d.ID, &o.buf)
	if err != nil {
		return nil, err
	}
	if own != step.Workload {
		return nil, fmt.Errorf("act on %s: %w: Docker's container %.12s is %s, and it binds no cgroup within or around one", step.Workload, journal.ErrRefused, d.ID, own)
	}
	return []journal.Change{{Setting: journal.Named(journal.OfContainer, prefix+d.ID, c.File), New: c.New}}, nil
}

// Read reads what Docker stores. A container is known by its id, also after a restart.
func (o *Owner) Read(s journal.Setting) (journal.Current, error) {
	d, err := o.inspect(s)
	if err != nil {
		return journal.Current{}, err
	}
	return journal.Current{Value: d.value(s.File), ID: number(d.ID)}, nil
}

func (o *Owner) inspect(s journal.Setting) (described, error) {
	id, ok := container(s)
	if !ok {
		return described{}, fmt.Errorf("read %s: it is no setting of a container of Docker's", s)
	}
	d, err := o.client.inspect(id)
	if err == nil && d.ID != id {
		err = fmt.Errorf("Docker answers with container %.80q (%w)", d.ID, kernel.ErrMalformed)
	}
	if err != nil {
		return described{}, fmt.Errorf("read %s: %w", s, err)
	}
	return d, nil
}

func (d described) value(file string) string {
	if file == cgroup.MemsFile {
		return d.HostConfig.CpusetMems
	}
	return d.HostConfig.CpusetCpus
}

// number is the beginning of an id, which is random: 15 hexadecimal digits.
func number(id string) uint64 {
	n, err := strconv.ParseUint(id[:min(len(id), 15)], 16, 64)
	if err != nil {
		return 1
	}
	return n
}

// Same compares sets by their members. Only Docker changes what it stores.
func (o *Owner) Same(s journal.Setting, current, recorded string) bool {
	if s.File == cgroup.MemsFile {
		return set.SameNodes(current, recorded)
	}
	return set.SameCPUs(current, recorded)
}

// Overrules returns what the container's cgroup has instead of what Docker stores, after
// a direct write. An empty file overrules nothing.
func (o *Owner) Overrules(s journal.Setting, value string) string {
	at, err := o.inCgroup(s)
	if err != nil {
		return ""
	}
	cur, err := o.cfg.Cgroups.Read(at)
	if err != nil || cur.Value == "" || value == "" || o.cfg.Cgroups.Same(at, cur.Value, value) {
		return ""
	}
	return fmt.Sprintf("%s is %q: another process wrote there, beneath Docker", at, cur.Value)
}

// inCgroup is the file in which a setting takes effect.
func (o *Owner) inCgroup(s journal.Setting) (journal.Setting, error) {
	d, err := o.inspect(s)
	if err != nil {
		return journal.Setting{}, err
	}
	if d.State.Pid == 0 {
		return journal.Setting{}, fmt.Errorf("find the cgroup of %s: it does not run (%w)", s, kernel.ErrGone)
	}
	own, err := o.layout.CgroupOf(d.State.Pid, d.ID, &o.buf)
	return journal.Setting{Cgroup: own, File: s.File}, err
}

// Write asks Docker to set a value. The value it replaces is remembered first.
func (o *Owner) Write(p journal.Permit, s journal.Setting, value string) error {
	id, ok := container(s)
	if !p.Valid() || !ok {
		return fmt.Errorf("set %s: %w: the journal gave no permit, or it is no container of Docker's", s, journal.ErrRefused)
	}
	if value == "" {
		return fmt.Errorf("set %s to nothing: %w: Docker takes that for 'as it is'", s, journal.ErrNeedsValue)
	}
	before, now, err := o.remember(s, value)
	if err != nil {
		return err
	}
	if err := o.client.update(id, names(s.File), value); err != nil {
		err = fmt.Errorf("set %s to %s: %w", s, value, err)
		if !errors.Is(err, journal.ErrNoAnswer) && !errors.Is(err, journal.ErrUnsure) { // it was not done
			err = errors.Join(err, o.save(before))
		}
		return err
	}
	return o.forget(now, s, value)
}

// Equivalent stands for an original that Docker, or the kernel, refuses: what the parent
// of the container's cgroup has. For a container that does not run it is everything there
// is.
func (o *Owner) Equivalent(s journal.Setting, original string) (string, error) {
	at, err := o.inCgroup(s)
	if err != nil {
		at = journal.Setting{Cgroup: "/stopped", File: s.File}
	}
	return o.cfg.Cgroups.Equivalent(at, original)
}

// Move moves pages: that changes nothing in Docker.
func (o *Owner) Move(ctx context.Context, p journal.Permit, step action.Step) action.Outcome {
	return o.cfg.Cgroups.MovePages(ctx, p, step)
}
