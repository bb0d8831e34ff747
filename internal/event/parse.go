// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"homenode/internal/unit"
)

// ErrMalformed marks a table that cannot be read.
var ErrMalformed = errors.New("malformed")

// The file's form.
type fileTable struct {
	Name      string        `json:"name"`
	Title     string        `json:"title"`
	Format    Format        `json:"format"`
	How       string        `json:"how"`
	Note      string        `json:"note"`
	LineBytes int           `json:"line_bytes"`
	Counters  int           `json:"counters"`
	CPUs      []fileMatch   `json:"cpus"`
	Sources   []Source      `json:"sources"`
	Fields    []fileReading `json:"fields"`

	Controllers []Controllers `json:"controllers"`
}

type fileMatch struct {
	Vendor      string `json:"vendor"`
	Family      int    `json:"family"`
	Models      string `json:"models"`
	Steppings   string `json:"steppings"`
	Implementer string `json:"implementer"`
	Part        string `json:"part"`
	PVR         string `json:"pvr"`
	Identifier  string `json:"identifier"`
}

type fileReading struct {
	Field  string      `json:"field"`
	Counts []fileCount `json:"counts"`
	Why    string      `json:"why"`
}

type fileCount struct {
	Sum    []fileEvent `json:"sum"`
	Leader *fileEvent  `json:"leader"`
	Note   string      `json:"note"`
	Writes bool        `json:"writes"`
	Near   Near        `json:"near"`
}

type fileEvent struct {
	Kernel string   `json:"kernel"`
	Name   string   `json:"name"`
	Names  []string `json:"names"`
	Event  string   `json:"event"`
	UMask  string   `json:"umask"`
	CMask  uint64   `json:"cmask"`
	Inv    bool     `json:"inv"`
	Edge   bool     `json:"edge"`

	Config1 string `json:"config1"`
	Without string `json:"without"`
}

// number reads one as documents have it: "0xd3"; "" is 0.
func number(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%.20q: want a number as 0xd3", text)
	}
	return n, nil
}

func wrong(path, format string, args ...any) error {
	return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
}

// Parse reads one table. Anything it does not know is refused.
//
//	{"name": "intel-skx", …
//	 "cpus": [{"vendor": "GenuineIntel", "family": 6, "models": "0x55", "steppings": "0-4"}],
//	 "fields": [
//	   {"field": "local_loads", "counts": [
//	     {"sum": [{"name": "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM", "event": "0xd3", "umask": "0x01"}]}]},
//	   {"field": "uncore_waits", "why": "no event counts them"}, …
func Parse(file string, data []byte) (Table, error) {
	var f fileTable
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Table{}, at(file, data, d, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Table{}, at(file, data, d, errors.New("there is more after the table"))
	}
	t, err := f.table()
	if err != nil {
		return Table{}, fmt.Errorf("parse %s: %w: %w", file, ErrMalformed, err)
	}
	return t, nil
}

// at says where the decoder stands, or where its error says it is.
func at(file string, data []byte, d *json.Decoder, err error) error {
	offset := d.InputOffset()
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.As(err, &typ) {
		offset = typ.Offset
	}
	offset = max(0, min(offset, int64(len(data))))
	line := 1 + bytes.Count(data[:offset], []byte("\n"))
	text, _, _ := bytes.Cut(data[1+bytes.LastIndexByte(data[:offset], '\n'):], []byte("\n"))
	return fmt.Errorf("parse %s: line %d %.60q: %w: %w", file, line, text, ErrMalformed, err)
}

func (f fileTable) table() (Table, error) {
	t := Table{Name: f.Name, Title: f.Title, Format: f.Format, Note: f.Note, LineBytes: f.LineBytes, Counters: f.Counters, Sources: f.Sources}
	var err error
	switch t.How, err = unit.ParseSource(f.How); {
	case err != nil || t.How != unit.HowMeasured && t.How != unit.HowModelled:
		return Table{}, wrong("how", "%.40q: want measured or modelled", f.How)
	case f.Name == "" || f.Title == "":
		return Table{}, wrong("name", "a table needs a name and a title")
	case f.Format != "" && f.Format != Intel && f.Format != AMD && f.Format != Arm && f.Format != Power:
		return Table{}, wrong("format", "%.40q: want intel, amd, arm or power", string(f.Format))
	case f.LineBytes < 16 || f.LineBytes > 4096 || bits.OnesCount(uint(f.LineBytes)) != 1:
		return Table{}, wrong("line_bytes", "%d: want a power of two from 16 to 4096", f.LineBytes)
	case f.Counters < 0 || f.Counters > 256:
		return Table{}, wrong("counters", "%d: want 0 to 256", f.Counters)
	case len(f.Sources) == 0:
		return Table{}, wrong("name", "a table needs its sources")
	}
	for i, s := range f.Sources {
		if s.Title == "" || s.Version == "" {
			return Table{}, wrong(fmt.Sprintf("sources[%d]", i), "a source needs a title and a version")
		}
	}
	for i, m := range f.CPUs {
		match, err := m.match()
		if err != nil {
			return Table{}, wrong(fmt.Sprintf("cpus[%d]", i), "%v", err)
		}
		t.CPUs = append(t.CPUs, match)
	}
	if err := f.readings(&t); err != nil {
		return Table{}, err
	}
	for i, c := range f.Controllers {
		if err := c.check(); err != nil {
			return Table{}, wrong(fmt.Sprintf("controllers[%d]", i), "%v", err)
		}
	}
	t.Controllers = f.Controllers
	return t, nil
}

func (m fileMatch) match() (Match, error) {
	implementer, err1 := number(m.Implementer)
	part, err2 := number(m.Part)
	models, err3 := parseRanges(m.Models)
	steppings, err4 := parseRanges(m.Steppings)
	pvr, err5 := number(m.PVR)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return Match{}, err
	}
	out := Match{Vendor: m.Vendor, Family: m.Family, Models: models, Steppings: steppings, Implementer: int(implementer), Part: int(part), PVR: int(pvr), Identifier: m.Identifier}
	kinds := 0
	for _, given := range []bool{m.Vendor != "", implementer != 0, pvr != 0, m.Identifier != ""} {
		if given {
			kinds++
		}
	}
	x86, arm := m.Family > 0 && len(models) > 0, part > 0
	rest := m.Family != 0 || m.Models != "" || m.Steppings != ""
	if kinds != 1 || x86 != (m.Vendor != "") || arm != (implementer != 0) || rest && !x86 {
		return Match{}, errors.New("want vendor, family and models, or implementer and part, or pvr, or identifier")
	}
	return out, nil
}

// readings must have every field once, in order: nothing is forgotten silently.
func (f fileTable) readings(t *Table) error {
	if len(f.Fields) != int(nFields) {
		return wrong("fields", "there are %d, and %d kinds: each has either counts or a why", len(f.Fields), nFields)
	}
	for i, r := range f.Fields {
		path := fmt.Sprintf("fields[%d]", i)
		if r.Field != Field(i).String() {
			return wrong(path, "%.40q: this is the place of %s", r.Field, Field(i))
		}
		if (r.Why == "") == (len(r.Counts) == 0) {
			return wrong(path, "%s has either counts or a why", r.Field)
		}
		out := Reading{Field: Field(i), Why: r.Why}
		for k, c := range r.Counts {
			path := fmt.Sprintf("%s.counts[%d]", path, k)
			count, err := c.count(f.Format, path)
			if err != nil {
				return err
			}
			if err := count.check(Field(i), len(t.CPUs) > 0 && f.Format != ""); err != nil {
				return wrong(path, "%v", err)
			}
			out.Counts = append(out.Counts, count)
		}
		t.Readings[i] = out
	}
	return nil
}

func (c fileCount) count(format Format, path string) (Count, error) {
	if len(c.Sum) == 0 {
		return Count{}, wrong(path, "a count is the sum of one event or more")
	}
	out := Count{Note: c.Note, Writes: c.Writes, Near: c.Near}
	if c.Leader != nil {
		leader, err := c.Leader.event(format)
		if err != nil {
			return Count{}, wrong(path+".leader", "%v", err)
		}
		out.Leader = &leader
	}
	for i, e := range c.Sum {
		got, err := e.event(format)
		if err != nil {
			return Count{}, wrong(fmt.Sprintf("%s.sum[%d]", path, i), "%v", err)
		}
		out.Events = append(out.Events, got)
	}
	return out, nil
}

// check holds a way to its field: reads by node say what near is, only samples have a
// leader.
func (c Count) check(f Field, ofCPU bool) error {
	byNode := f == LocalLoads || f == RemoteLoads
	switch {
	case c.Leader != nil && f != LoadSamples && f != StoreSamples:
		return fmt.Errorf("%s: only samples have a leader", f)
	case byNode && ofCPU && c.Near != NearNode && c.Near != NearPackage && c.Near != NearUnknown:
		return fmt.Errorf("near: %.40q: want node, package or unknown", string(c.Near))
	case !byNode && c.Near != "":
		return fmt.Errorf("near: %s has none", f)
	}
	return nil
}

func (e fileEvent) event(format Format) (Event, error) {
	what, err1 := number(e.Event)
	mask, err2 := number(e.UMask)
	config1, err3 := number(e.Config1)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Event{}, err
	}
	code := Code{Event: what, UMask: mask, CMask: e.CMask, Inv: e.Inv, Edge: e.Edge, Config1: config1}
	if e.Kernel != "" {
		config := slices.Index(kernelEvents, e.Kernel)
		if config < 0 || e.Name != "" || len(e.Names) > 0 || code != (Code{}) {
			return Event{}, fmt.Errorf("kernel: %.40q: want cpu-cycles or instructions, and nothing else", e.Kernel)
		}
		return Event{Kernel: e.Kernel, Type: TypeHardware, Config: uint64(config)}, nil
	}
	names := e.Names
	if e.Name != "" {
		names = append([]string{e.Name}, names...)
	}
	if len(names) == 0 || e.Name != "" && len(e.Names) > 0 {
		return Event{}, errors.New("an event needs its name, or several names")
	}
	event, umask, cmask, config1Bits := format.widths()
	if bits.Len64(code.Event) > event || bits.Len64(code.UMask) > umask || bits.Len64(e.CMask) > cmask || bits.Len64(config1) > config1Bits || cmask == 0 && (e.Inv || e.Edge) {
		return Event{}, fmt.Errorf("event %#x, umask %#x, cmask %d, config1 %#x: more than format %q has room for", code.Event, code.UMask, code.CMask, config1, format)
	}
	if e.Without != "" && config1 == 0 {
		return Event{}, fmt.Errorf("without: %.80q: only events with config1 leave another's answers out", e.Without)
	}
	return Event{Names: names, Without: e.Without, Code: code, Type: TypeRaw, Config: format.config(code)}, nil
}
