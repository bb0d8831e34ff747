// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/machine"
	"homenode/internal/model/gain"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/runner"
	"homenode/internal/window"
)

// trialTimes are the parts of a trial, in order: whole minutes together.
type trialTimes struct {
	look, settle, compare time.Duration
	least                 time.Duration // of compare, in which it was bound
}

// The lab's closed loops settle in seconds.
var (
	fleetTrial = trialTimes{look: 30 * time.Minute, settle: 10 * time.Minute, compare: 30 * time.Minute, least: 20 * time.Minute}
	labTrial   = trialTimes{look: 16 * time.Second, settle: 14 * time.Second, compare: 30 * time.Second, least: 20 * time.Second}
)

const labPeriod = 2 * time.Second

func (c Config) trial() trialTimes {
	if c.Lab != nil {
		return labTrial
	}
	return fleetTrial
}

func (t trialTimes) lasts() time.Duration { return t.look + t.settle + t.compare }

// ForTrials is a fleet's configuration with what trials need.
func (c Config) ForTrials() Config {
	if c.Lab != nil {
		c.Period = labPeriod
	}
	if c.newWorld == nil {
		c.newWorld = simWorld
	}
	c.Size.Minutes, c.Warmup, c.Share, c.MAO.Target = int(c.trial().lasts()/time.Minute), 0, 1, 1
	return c
}

// RunTrials measures what binding a replica brings: alone, and with all replicas of its server.
//
//  1. A trial takes trialTimes: replicas are looked at, those of the arm are bound, their
//     memory follows, and what they get is compared with a server where none is bound. Demand
//     is the same in all arms.
//  2. Each server has its own hour of the day.
//  3. Arms: no replica bound; all of them; each one alone.
//  4. All of it twice, each time with other arrivals and the noise of measuring: how far two
//     trials of one replica are apart is what no prediction can be better than.
//
// MAO itself binds, with a target of 1: a trial asks what a binding brings, not whether MAO
// would make it. A replica that MAO could not bind, or not for long enough, makes no row.
//
// It goes server by server, and sink gets the rows in the order of servers. The result does not
// depend on the number of workers.
func RunTrials(ctx context.Context, c Config, sink func([]gain.Row) error, progress Progress) error {
	c = c.ForTrials()
	if err := c.Validate(); err != nil {
		return err
	}
	plan := &Plan{Host: HostOf(c.Machine, c.System)}
	if c.Lab == nil {
		var err error
		if plan, err = Generate(c.Seed, plan.Host, c.Size); err != nil {
			return err
		}
	}
	done := 0
	return runner.Run(ctx, runner.Plan[[]gain.Row]{
		Cells: c.Size.Servers, Workers: c.Workers, Ahead: 4 * max(c.Workers, 1),
		Run: func(ctx context.Context, server int, _ func(float64)) ([]gain.Row, error) {
			j := newTrial(&c, plan, server)
			return j.run(ctx)
		},
		Take: func(server int, rows []gain.Row) error {
			done++
			if progress != nil {
				progress(done, c.Size.Servers)
			}
			if err := sink(rows); err != nil {
				return fmt.Errorf("rows of server %d: %w", server, err)
			}
			return nil
		},
	})
}

// trial is one server.
type trial struct {
	job
	whole map[string]int // replicas that are tried, which are there from start to end, by ID: the index of their spec
	seed  uint64         // of its rows
}

// draw makes a mix of the lab's trials. Only its services are tried.
func (j *trial) draw(shape machine.Shape) {
	j.seed += uint64(j.server)
	mix := catalog.DrawTrials(j.seed)
	j.specs = mix.Specs(j.config.System.Hz, float64(shape.Model.TimeFactor), float64(shape.Model.StreamParallelism))
	for i, s := range mix.Services {
		j.whole[j.specs[i].IDs()[0]] = i
		j.specs[i].Service = fmt.Sprintf("%s-%s-%d", s.Kind, s.Name, mix.Seed)
	}
}

func newTrial(c *Config, plan *Plan, server int) *trial {
	j := &trial{job: job{config: c, plan: plan, server: server}, whole: map[string]int{}, seed: c.Seed}
	if c.Lab != nil {
		j.draw(*c.Lab)
		return j
	}
	j.specs = plan.Specs(server)
	r := detmath.NewRandom(c.Seed, "fleet", "hour", strconv.Itoa(server))
	const day = 24 * time.Hour
	later := time.Duration(r.Below(24*60)) * time.Minute // 2
	for i := range j.specs {
		s := &j.specs[i]
		s.Demand.Peak = (s.Demand.Peak + later) % day
		if s.Arrive == 0 && s.Depart == 0 {
			j.whole[s.IDs()[0]] = i
		}
	}
	return j
}

// effects are what each replica got from an arm, by ID.
type effects map[string]*comparison

// once is number 3, with one seed of arrivals.
type once struct {
	features   map[string]*means
	busy       mean
	idlest     mean
	alone, all effects
}

func (j *trial) run(ctx context.Context) (rows []gain.Row, err error) {
	var both [2]once
	for i := range both { // 4
		if both[i], err = j.once(ctx, i); err != nil {
			return nil, err
		}
	}
	ids := make([]string, 0, len(j.whole))
	for id := range j.whole {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if row, ok := j.row(id, both); ok {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// record is a server with no replica bound: the truth of each window, by ID.
type record []map[string]sim.Truth

func (j *trial) once(ctx context.Context, again int) (o once, err error) {
	r := detmath.NewRandom(j.config.serverSeed(j.server), "trial", strconv.Itoa(again))
	seed := r.Uint64()
	off, err := j.unbound(ctx, seed, &o)
	if err != nil {
		return o, err
	}
	o.alone = effects{}
	if o.all, err = j.arm(ctx, seed, off, ""); err != nil {
		return o, err
	}
	for id := range j.whole {
		one, err := j.arm(ctx, seed, off, id)
		if err != nil {
			return o, err
		}
		o.alone[id] = one[id]
	}
	return o, nil
}

// unbound is the arm in which no replica is bound, and where the features are from.
func (j *trial) unbound(ctx context.Context, seed uint64, o *once) (off record, err error) {
	s, err := j.newSide(seed, runner.None)
	if err != nil {
		return nil, err
	}
	o.features = map[string]*means{}
	for i := range j.config.windows() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := s.loop.Round()
		off = append(off, byID(s.world.Truth()))
		if i < j.config.inWindows(j.config.trial().look) {
			j.look(w, o)
		}
	}
	return off, nil
}

func (j *trial) look(w window.Window, o *once) {
	used := 0.0
	for k := range w.Workloads {
		wl := &w.Workloads[k]
		used += wl.CPU.Or(0)
		if _, ok := j.whole[wl.ID]; !ok {
			continue
		}
		if o.features[wl.ID] == nil {
			o.features[wl.ID] = &means{}
		}
		o.features[wl.ID].addWindow(wl, w.Length)
	}
	o.busy.add(used/j.plan.Host.CPUs, true)
	o.idlest.add(w.Use().Idlest.Get())
}

func byID(all []sim.Truth) map[string]sim.Truth {
	m := make(map[string]sim.Truth, len(all))
	for _, t := range all {
		m[t.Workload] = t
	}
	return m
}

// arm binds one replica, or all ("").
func (j *trial) arm(ctx context.Context, seed uint64, off record, id string) (effects, error) {
	s, err := j.newSide(seed, runner.MAO)
	if err != nil {
		return nil, err
	}
	looked := false
	s.loop.Policy = runner.Approving{Policy: s.loop.Policy, Approve: func(wl *window.Workload) bool { return looked && (id == "" || wl.ID == id) }}
	got, since := effects{}, map[string]int{}
	for i := range j.config.windows() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		looked = i >= j.config.inWindows(j.config.trial().look)
		w := s.loop.Round()
		with := byID(s.world.Truth())
		for k := range w.Workloads {
			who := w.Workloads[k].ID
			if !s.loop.Bound(who) {
				since[who] = 0
				continue
			}
			since[who]++
			if on, here := with[who]; here && since[who] > j.config.inWindows(j.config.trial().settle) {
				without := off[i][who]
				if got[who] == nil {
					got[who] = &comparison{}
				}
				got[who].addWindow(&on, &without, 0, 0)
			}
		}
	}
	return got, nil
}

// timeOf is the mean latency of requests; a closed loop's is the time in which it does an operation.
func timeOf(t *runner.Tally) *float64 {
	if t.Requests > 0 {
		return meanLatency(t)
	}
	return over(t.Seconds, t.Ops)
}

// row needs both trials of the replica alone. All of its server may lack it: then it is unknown.
func (j *trial) row(id string, both [2]once) (gain.Row, bool) {
	c := j.config
	least := c.inWindows(c.trial().least)
	for _, o := range both {
		x := o.alone[id]
		if x == nil || x.windows < least || timeOf(&x.with) == nil || timeOf(&x.without) == nil {
			return gain.Row{}, false
		}
	}
	service := j.specs[j.whole[id]].Service
	kind, name, _ := strings.Cut(service, "-")
	random := detmath.NewRandom(c.Seed, "fleet", "trial noise", id, strconv.Itoa(j.server))
	latency := func(x *comparison) *float64 { return gainOf(timeOf(&x.with), timeOf(&x.without)) }
	cpu := func(x *comparison) *float64 { return gainOf(cpuPerOp(&x.with), cpuPerOp(&x.without)) }
	noisy := func(g *float64, deviation float64) *float64 {
		if g == nil {
			return nil
		}
		v := *g
		putGain(&v, deviation, &random)
		return &v
	}
	var f Row
	both[0].features[id].into(&f)
	f.Disturb(c.Noise, detmath.NewRandom(c.Seed, "fleet", "trial features", id, strconv.Itoa(j.server)))
	r := gain.Row{
		Server: hash(c.Seed, "server", fmt.Sprint(j.server)), Service: hash(c.Seed, "service", service), Replica: hash(c.Seed, "replica", id),
		Kind: kind, Source: gain.Simulator, Machine: c.Machine.Origin, Seed: j.seed, Generator: GeneratorVersion,
		MBW: f.MBW, MSR: f.MSR, NPMR: f.NPMR, RMBR: f.RMBR, CPU: f.CPU, IPC: f.IPC, MPKI: f.LLCMPKI,
		Busy: both[0].busy.value(), Idlest: both[0].idlest.value(), Windows: int32(both[0].alone[id].windows), Neighbours: int32(len(j.specs) - 1),
		GainLatencyTrue: latency(both[0].alone[id]),
	}
	if c.Lab != nil {
		r.Server, r.Service = fmt.Sprintf("%016x", j.seed), gain.Hashed("service", name)
		r.Replica = r.Server + "-" + r.Service
	}
	if f.CPU != nil {
		r.CPUOfNode = over(*f.CPU, c.Machine.FewestCPUs())
	}
	n := c.Noise.Gains
	r.GainLatency, r.GainLatencyAgain = noisy(latency(both[0].alone[id]), n.Latency), noisy(latency(both[1].alone[id]), n.Latency)
	r.GainCPU, r.GainCPUAgain = noisy(cpu(both[0].alone[id]), n.CPU), noisy(cpu(both[1].alone[id]), n.CPU)
	if x := both[0].all[id]; x != nil && x.windows >= least {
		r.GainLatencyAll, r.GainCPUAll = noisy(latency(x), n.Latency), noisy(cpu(x), n.CPU)
	}
	return r, true
}

// NewTrialTable starts a file of trials.
func NewTrialTable(to io.Writer, c Config, command string) (*Table[gain.Row], error) {
	metadata, err := trialMetadata(c.ForTrials(), command)
	if err != nil {
		return nil, err
	}
	return NewTable[gain.Row](to, metadata), nil
}

// trialMetadata is what a file of trials says about how it was made, in this order.
func trialMetadata(c Config, command string) ([]KeyValue, error) {
	all, err := TableAbout{Command: command, Config: c}.metadata()
	if err != nil {
		return nil, err
	}
	for i := range all {
		switch all[i].Key {
		case KeySchema:
			all[i].Value = strconv.Itoa(gain.RowSchema)
		case KeyGain:
			all[i].Value = "1 - bound / unbound of the same replica over the same windows, bound alone; _all: with all replicas of its server; _again: a second trial"
		}
	}
	return append(all, KeyValue{"homenode.kind", gain.KindRows}), nil
}
