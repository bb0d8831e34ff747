// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/owner"
)

// DefaultSocket is where containerd listens.
const DefaultSocket = "/run/containerd/containerd.sock"

// Config says where containerd is.
type Config struct {
	Socket  string // "": DefaultSocket
	Cgroups owner.Cgroups
}

// Owner is the journal.Owner of containerd's containers.
type Owner struct {
	cfg    Config
	client *client
	layout cgroup.Layout
	buf    unix.Buffer
	// at is the cgroup of each container that was asked for, so that not every read needs
	// containerd. A container that was made anew has a new cgroup, by its inode.
	at map[string]string
	// seen is the ID of the last read: what is on record belongs to it.
	seen map[journal.Setting]uint64
}

// Ended forgets the cgroup of a container that no longer concerns us.
func (o *Owner) Ended(s journal.Setting) error {
	delete(o.at, s.Name())
	delete(o.seen, s)
	return nil
}

// New acts on the running kernel's containers: it needs the token that only kernel.Live
// makes. It does not ask containerd before there is something to do.
func New(live kernel.LiveToken, cfg Config) (*Owner, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on containerd's containers: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	return newOwner(live.Root(), cfg)
}

func newOwner(root kernel.Root, cfg Config) (*Owner, error) {
	layout, err := cgroup.Find(root)
	if err != nil {
		return nil, err
	}
	if cfg.Socket == "" {
		cfg.Socket = DefaultSocket
	}
	return &Owner{cfg: cfg, client: newClient(cfg.Socket), layout: layout, at: map[string]string{}, seen: map[journal.Setting]uint64{}}, nil
}

const prefix = "containerd/"

// container is the namespace and the id of a setting's container.
func container(s journal.Setting) (namespace, id string, ok bool) {
	rest, ok := strings.CutPrefix(s.Name(), prefix)
	namespace, id, cut := strings.Cut(rest, "/")
	file := s.File == cgroup.CPUsFile || s.File == cgroup.MemsFile
	return namespace, id, ok && cut && file && s.Kind() == journal.OfContainer && namespace != "" && id != ""
}

// Names reports whether a setting belongs to a container of containerd.
func (o *Owner) Names(s journal.Setting) bool {
	_, _, ok := container(s)
	return ok
}

// Plan lists the container settings that a step changes.
func (o *Owner) Plan(_ context.Context, step action.Step) ([]journal.Change, error) {
	c, err := o.cfg.Cgroups.Fits(step)
	if err == nil && step.Kind == action.SetMems {
		err = owner.RefuseSlowMove(o.layout, step, owner.MostElsewhere, "containerd and runc")
	}
	if err != nil {
		return nil, err
	}
	who := o.layout.ContainerOf(step.Workload, &o.buf)
	if err := mayAct(step.Workload, who); err != nil {
		return nil, err
	}
	s := journal.Named(journal.OfContainer, prefix+who.Namespace+"/"+who.ID, c.File)
	at, err := o.find(who.Namespace, who.ID)
	if err != nil {
		return nil, fmt.Errorf("act on %s: %w", step.Workload, err)
	}
	if at != step.Workload {
		return nil, fmt.Errorf("act on %s: %w: containerd's container %s is %s, and it binds no cgroup within or around one", step.Workload, journal.ErrRefused, who.ID, at)
	}
	o.at[s.Name()] = at
	return []journal.Change{{Setting: s, New: c.New}}, nil
}

// mayAct refuses containers of other owners, and unknown ones.
func mayAct(workload string, c cgroup.Container) error {
	why := ""
	switch {
	case c.Namespace == cgroup.KubeletNamespace:
		why = "it is in containerd's namespace k8s.io, so it is the kubelet's, whose CPU and memory managers place it: it is observed and left alone"
	case c.Namespace == cgroup.DockerNamespace:
		why = "it is in containerd's namespace moby, so it is Docker's, and containerd is not asked behind its back"
	case c.Namespace == "" || c.ID == "":
		why = "neither its path nor a shim above its processes tells its namespace in containerd"
	default:
		return nil
	}
	return fmt.Errorf("act on %s: %w: %s", workload, journal.ErrRefused, why)
}

// find asks for the cgroup of a container.
func (o *Owner) find(namespace, id string) (string, error) {
	p, err := o.client.get(namespace, id)
	if err != nil {
		return "", err
	}
	if p.status != statusStopped && (p.pid == 0 || p.status == 0) {
		return "", fmt.Errorf("read container %s of containerd's namespace %s: process %d in state %d is none (%w)", id, namespace, p.pid, p.status, kernel.ErrMalformed)
	}
	if p.status == statusStopped {
		return "", fmt.Errorf("container %s of containerd's namespace %s does not run (%w)", id, namespace, kernel.ErrGone)
	}
	return o.layout.CgroupOf(p.pid, id, &o.buf)
}

// inCgroup is the file in which a setting takes effect.
func (o *Owner) inCgroup(s journal.Setting) (journal.Setting, error) {
	namespace, id, ok := container(s)
	if !ok {
		return journal.Setting{}, fmt.Errorf("act on %s: it is no setting of a container of containerd's", s)
	}
	at, known := o.at[s.Name()]
	if !known {
		var err error
		if at, err = o.find(namespace, id); err != nil {
			return journal.Setting{}, fmt.Errorf("read %s: %w", s, err)
		}
		o.at[s.Name()] = at
	}
	return journal.Setting{Cgroup: at, File: s.File}, nil
}

// Read reads the container's cgroup: containerd does not store what was set.
func (o *Owner) Read(s journal.Setting) (journal.Current, error) {
	at, err := o.inCgroup(s)
	if err != nil {
		return journal.Current{}, err
	}
	cur, err := o.cfg.Cgroups.Read(at)
	if err != nil {
		delete(o.at, s.Name()) // it may be elsewhere by now
	}
	if errors.Is(err, kernel.ErrNotSupported) { // the file is gone with its controller
		return cur, fmt.Errorf("read %s: %v (%w)", s, err, kernel.ErrGone) // %v: what is gone must not also count as not supported
	}
	o.seen[s] = cur.ID
	return cur, err
}

// anew reports that a setting no longer belongs to the container from which it was last
// read, because a container was made anew under its name. A failed read does not count.
func (o *Owner) anew(s journal.Setting) bool {
	seen, ok := o.seen[s]
	cur, err := o.Read(s)
	if ok && seen != 0 {
		o.seen[s] = seen
	}
	return ok && seen != 0 && err == nil && cur.ID != seen
}

// Same compares sets by their members.
func (o *Owner) Same(s journal.Setting, current, recorded string) bool {
	at, err := o.inCgroup(s)
	if err != nil {
		return current == recorded
	}
	return o.cfg.Cgroups.Same(at, current, recorded)
}

// Write asks containerd for a value.
func (o *Owner) Write(p journal.Permit, s journal.Setting, value string) error {
	namespace, id, ok := container(s)
	if !p.Valid() || !ok {
		return fmt.Errorf("set %s: %w: the journal gave no permit, or it is no container of containerd's", s, journal.ErrRefused)
	}
	if value == "" {
		return fmt.Errorf("set %s to nothing: %w: containerd takes that for 'as it is'", s, journal.ErrNeedsValue)
	}
	if o.anew(s) {
		return fmt.Errorf("set %s to %s: the container was made anew meanwhile (%w)", s, value, kernel.ErrGone)
	}
	if err := o.client.update(namespace, id, s.File, value); err != nil {
		return fmt.Errorf("set %s to %s: %w", s, value, err)
	}
	if o.anew(s) {
		return o.letGo(s, value)
	}
	return nil
}

// letGo gives everything its parent has to a container that was made anew between our
// question and its answer. That container has our value only because of its name, and is
// on no record.
func (o *Owner) letGo(s journal.Setting, value string) error {
	namespace, id, _ := container(s)
	all, err := o.Equivalent(s, "")
	if err == nil {
		err = o.client.update(namespace, id, s.File, all)
	}
	if err != nil {
		return fmt.Errorf("set %s to %s: the container was made anew meanwhile, has it now, and could not be released: %w (%w)", s, value, err, journal.ErrUnsure)
	}
	return fmt.Errorf("set %s to %s: the container was made anew meanwhile, and is released again (%w)", s, value, kernel.ErrGone)
}

// Equivalent stands for an original that cannot be restored: what the parent of the
// container's cgroup has of it.
func (o *Owner) Equivalent(s journal.Setting, original string) (string, error) {
	at, err := o.inCgroup(s)
	if err != nil {
		return "", err
	}
	return o.cfg.Cgroups.Equivalent(at, original)
}

// Move moves pages: that changes nothing in containerd.
func (o *Owner) Move(ctx context.Context, p journal.Permit, step action.Step) action.Outcome {
	return o.cfg.Cgroups.MovePages(ctx, p, step)
}
