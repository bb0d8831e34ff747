// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Exported is a row of an export: one window, or where only roll-ups are kept, a minute or an
// hour of a workload. nil is unknown.
type Exported struct {
	At       int64   `parquet:"at,timestamp(millisecond)"` // end of a window, start of a minute or an hour
	Level    string  `parquet:"level,dict"`                // window, minute, hour
	Host     string  `parquet:"host,dict"`
	Workload []byte  `parquet:"workload,dict"`
	Service  string  `parquet:"service,dict"`
	Owner    string  `parquet:"owner,dict"`
	Name     string  `parquet:"name,dict"`
	Windows  int64   `parquet:"windows"`
	Length   float64 `parquet:"length_s"`
	Bound    float64 `parquet:"bound_ratio"`
	Approved float64 `parquet:"approved_ratio"`

	CPU          *float64 `parquet:"cpu_cpus,optional"`
	Waiting      *float64 `parquet:"waiting_ratio,optional"`
	Local        *float64 `parquet:"local_ratio,optional"`
	LocalHow     string   `parquet:"local_how,dict"`
	LocalReads   *float64 `parquet:"local_reads,optional"`
	Reads        *float64 `parquet:"reads,optional"`
	Cycles       *float64 `parquet:"cycles,optional"`
	Instructions *float64 `parquet:"instructions,optional"`
	Stalls       *float64 `parquet:"stall_cycles,optional"`
	Traffic      *float64 `parquet:"traffic_bytes,optional"`
	Latency      *float64 `parquet:"latency_s,optional"`
	MBW          *float64 `parquet:"mbw_bytes_per_s,optional"`
	MSR          *float64 `parquet:"msr_ratio,optional"`
	NPMR         *float64 `parquet:"npmr_ratio,optional"`
	RMBR         *float64 `parquet:"rmbr_ratio,optional"`
	Anon         *float64 `parquet:"anon_bytes,optional"`
	File         *float64 `parquet:"file_bytes,optional"`
	// Of its host: see the columns of 'features'.
	CPUOfNode *float64 `parquet:"cpu_of_node_ratio,optional"`
	Busy      *float64 `parquet:"server_busy_ratio,optional"`
	Idlest    *float64 `parquet:"idlest_node_busy_ratio,optional"`

	CPUHow     string `parquet:"cpu_how,dict"`
	CyclesHow  string `parquet:"cycles_how,dict"` // of instructions, stall cycles and MSR, too
	TrafficHow string `parquet:"traffic_how,dict"`
	LatencyHow string `parquet:"latency_how,dict"`
	PagesHow   string `parquet:"pages_how,dict"` // anon, file, NPMR
	ServerHow  string `parquet:"server_how,dict"`
}

// Levels are a plan's pieces for an export: raw rows where they are kept, then minutes, then hours.
func Levels(from, until int64, kept Kept) []Piece {
	minutes, raw := max(from, kept[Minutes]), max(from, kept[Raw])
	pieces := []Piece{
		{Hours, Bucket(from, time.Hour), min(until, minutes)},
		{Minutes, Bucket(minutes, time.Minute), min(until, raw)},
		{Raw, raw, until},
	}
	return slices.DeleteFunc(pieces, func(p Piece) bool { return p.From >= p.Until })
}

// Key is which workload a row is of, and when.
type Key struct {
	At                                   int64
	Host, Workload, Service, Owner, Name string
}

// Row is a fact as an export has it.
func (l Level) Row(k Key, f Fact) Exported {
	c := map[string]float64{}
	for i, name := range WindowColumns {
		c[name] = f[i]
	}
	quotient := func(value, weight string) *float64 {
		if c[weight] <= 0 {
			return nil
		}
		v := c[value] / c[weight]
		return &v
	}
	sum := func(value, weight string) *float64 {
		if v := c[value]; c[weight] > 0 {
			return &v
		}
		return nil
	}
	e := Exported{
		At: k.At, Level: [...]string{"window", "minute", "hour"}[l], Host: utf8(k.Host), Workload: []byte(k.Workload),
		Service: utf8(k.Service), Owner: utf8(k.Owner), Name: utf8(k.Name), Windows: int64(c["windows"]), Length: c["length_s"],
		CPU: quotient("cpu_s", "cpu_known_s"), Waiting: quotient("waiting_s", "waiting_known_s"),
		Local: quotient("local_reads", "reads"), LocalHow: howName(noHow),
		LocalReads: sum("local_reads", "reads"), Reads: sum("reads", "reads"),
		Cycles: sum("cycles", "cycles"), Instructions: sum("instructions", "cycles"), Stalls: sum("stalls", "cycles"),
		Traffic: sum("traffic_bytes", "traffic_known_s"), Latency: quotient("latency_x_s", "latency_known_s"),
		MBW: quotient("mbw_x_s", "mbw_known_s"), MSR: quotient("stalled_cpu_s", "stalled_known_cpu_s"),
		NPMR: quotient("npmr_x_s", "npmr_known_s"), RMBR: quotient("rmbr_x_s", "rmbr_known_s"),
		Anon: quotient("anon_byte_s", "memory_known_s"), File: quotient("file_byte_s", "memory_known_s"),
		CPUOfNode: quotient("of_node_x_s", "of_node_known_s"), Busy: quotient("server_busy_x_s", "server_known_s"), Idlest: quotient("idlest_busy_x_s", "server_known_s"),
		CPUHow: howName(c["cpu_how"]), CyclesHow: howName(c["cycles_how"]), TrafficHow: howName(c["traffic_how"]), LatencyHow: howName(c["latency_how"]), PagesHow: howName(c["pages_how"]), ServerHow: howName(c["server_how"]),
	}
	if e.Length > 0 {
		e.Bound, e.Approved = c["bound_s"]/e.Length, c["approved_s"]/e.Length
	}
	code := c["reads_how"]
	if e.Local == nil {
		e.Local, code = quotient("guess_local_cpu_s", "guess_cpu_s"), c["guess_how"]
	}
	if e.Local != nil {
		e.LocalHow = howName(code)
	}
	return e
}

// utf8 is text as Parquet's readers take it. A workload's name keeps its bytes.
func utf8(s string) string { return strings.ToValidUTF8(s, "�") }

// rowGroup is how many rows of a Parquet file are in memory at once.
const rowGroup = 64 << 10

// Export writes rows as Parquet.
func Export(to io.Writer, rows func(yield func(Exported) error) error) error {
	w := parquet.NewGenericWriter[Exported](to, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Snappy), parquet.CreatedBy("homenode", "1", ""))
	one := make([]Exported, 1)
	err := rows(func(e Exported) error {
		one[0] = e
		_, err := w.Write(one)
		return err
	})
	if err != nil {
		return fmt.Errorf("export windows: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("export windows: %w", err)
	}
	return nil
}
