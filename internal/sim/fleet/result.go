// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"time"

	"homenode/internal/schema"
	"homenode/internal/sim/runner"
)

// ResultSchema is the version of a result's wire form. Readers refuse a newer one.
const ResultSchema = 1

// Result is the result of a fleet. All of its figures are modelled; nil is unknown.
type Result struct {
	Schema    int     `json:"schema"`
	How       string  `json:"how"` // always "modelled"
	Generator int     `json:"generator_version"`
	Seed      uint64  `json:"seed"`
	Machine   string  `json:"machine_name"` // its origin
	From      string  `json:"from"`         // source of its figures
	Nodes     int     `json:"node_count"`
	CPUs      float64 `json:"cpu_count"` // per server
	Servers   int     `json:"servers"`
	PeriodS   float64 `json:"period_s"`
	Seconds   float64 `json:"seconds"` // per server, without the warm-up
	Share     float64 `json:"share"`   // share of the servers that have MAO
	// ObservedS is how long MAO leaves a replica alone after its arrival. With a data set
	// it is observed first, so there are fewer and later bindings. 0: it is not observed.
	ObservedS float64 `json:"observed_s"`
	Services  int     `json:"service_count"`
	Stays     int     `json:"stay_count"` // stays of replicas on servers
	Unplaced  int     `json:"unplaced"`
	// Workloads per server, on average.
	Workloads float64 `json:"workloads_per_server"`

	Without *Side            `json:"without_mao"`
	With    *Side            `json:"with_mao"`
	Change  *Change          `json:"changes"` // with MAO against without
	List    []ServiceFigures `json:"list"`    // services, in the order of the catalogue

	DataSet *DataSet `json:"data_set"`
}

// Side is the servers with MAO, or those without.
type Side struct {
	Servers     int      `json:"servers"`
	LocalRatio  *float64 `json:"local_ratio"` // local share of DRAM reads
	Utilisation float64  `json:"utilisation"` // CPU time / (CPUs × time)
	CPUSeconds  float64  `json:"cpu_seconds"`
	// UnbindRatio is unbound workload-time / all workload-time. nil: without MAO.
	UnbindRatio *float64 `json:"unbind_ratio"`
	Binds       *Binds   `json:"bind_counts"`
}

// Binds is what MAO did after the warm-up.
type Binds struct {
	Binds     int     `json:"binds"`
	Asides    int     `json:"asides"` // CPUs only, to make room
	Unbinds   int     `json:"unbinds"`
	Refused   int     `json:"refused"`
	MovedB    float64 `json:"moved_bytes"`
	MoverCPUS float64 `json:"mover_cpu_s"`
}

// ServiceFigures are for all replicas of a service.
type ServiceFigures struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Replicas int      `json:"replicas"`
	Without  *Figures `json:"without_mao"`
	With     *Figures `json:"with_mao"`
}

// Figures are means over a service's replicas and its time.
type Figures struct {
	Hours      float64  `json:"hours"` // total of all replicas
	Ops        float64  `json:"ops"`
	Dropped    float64  `json:"dropped"`
	LocalRatio *float64 `json:"local_ratio"`
	LatencyS   *float64 `json:"latency_s"`
	// P99S is the mean of the windows' P99, which are the largest of their steps'
	// estimates; windows are weighted by their operations.
	P99S     *float64 `json:"p99_s"`
	CPUPerOp *float64 `json:"cpu_s_per_op"`
	IPC      *float64 `json:"ipc"`
	StalledS float64  `json:"stalled_s"`
}

// DataSet describes the recorded data set.
type DataSet struct {
	Rows          int     `json:"row_count"`
	Controls      int     `json:"controls"` // rows of replicas that were never bound
	Skipped       Skipped `json:"skipped_rows"`
	NoiseMeasured bool    `json:"noise_measured"`
	Noise         string  `json:"noise"` // its source, or that it was not measured
}

// Validate says what is invalid in a result.
func (r Result) Validate() error {
	if err := runner.CheckForm(r.Schema, ResultSchema, r.How); err != nil {
		return err
	}
	if r.Servers < 1 {
		return errors.New("servers must be at least 1")
	}
	return nil
}

// Encode writes a result.
func Encode(r Result) ([]byte, error) { return schema.Encode(r, "fleet") }

// Decode reads a result.
func Decode(data []byte) (Result, error) { return schema.Decode[Result](data, "fleet", ResultSchema) }

func (s *sum) result() Result {
	c, p := s.config, s.plan
	r := Result{
		Schema: ResultSchema, How: runner.How, Generator: GeneratorVersion, Seed: c.Seed, Machine: c.Machine.Origin, From: c.System.From,
		Nodes: len(c.Machine.Nodes), CPUs: p.Host.CPUs, Servers: s.servers, PeriodS: c.Period.Seconds(), Seconds: c.measured().Seconds(), Share: c.Share,
		Services: len(p.Services), Stays: len(p.Stays), Unplaced: p.Unplaced, Workloads: p.workloads(),
		Without: s.side(&s.without, false), With: s.side(&s.with, true), Change: s.compared.change(c.Seed, len(p.Services)),
	}
	for i, v := range p.Services {
		r.List = append(r.List, ServiceFigures{Name: v.Name, Kind: v.Kind, Replicas: v.Replicas, Without: figures(&s.without.services[i]), With: figures(&s.with.services[i])})
	}
	if c.DataSet {
		r.ObservedS = (time.Duration(c.inWindows(lookFor)) * c.Period).Seconds()
		r.DataSet = &DataSet{Rows: s.rows, Controls: s.controls, Skipped: s.skipped, Noise: c.Noise.Source}
		if source, err := c.Noise.Measured(); err == nil {
			r.DataSet.NoiseMeasured, r.DataSet.Noise = true, source
		}
	}
	return r
}

// workloads is the number per server, on average.
func (p *Plan) workloads() float64 {
	var minutes float64
	for _, y := range p.Stays {
		minutes += float64(y.To - y.From)
	}
	return minutes / float64(p.Minutes) / float64(p.Servers)
}

func (s *sum) side(h *half, on bool) *Side {
	if h.servers == 0 {
		return nil
	}
	var all runner.Tally
	for i := range h.services {
		all.Plus(&h.services[i])
	}
	time := s.config.measured().Seconds() * float64(h.servers) * s.plan.Host.CPUs
	side := &Side{Servers: h.servers, LocalRatio: localRatio(&all), Utilisation: all.CPU / time, CPUSeconds: all.CPU}
	if on {
		side.UnbindRatio, side.Binds = over(h.unbound, h.all), &h.binds
	}
	return side
}

func figures(t *runner.Tally) *Figures {
	if t.Seconds == 0 {
		return nil
	}
	return &Figures{
		Hours: t.Seconds / 3600, Ops: t.Ops, Dropped: t.Dropped, LocalRatio: localRatio(t), LatencyS: meanLatency(t), P99S: meanP99(t),
		CPUPerOp: cpuPerOp(t), IPC: ipc(t), StalledS: t.Stalled,
	}
}
