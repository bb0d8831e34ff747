// SPDX-License-Identifier: Apache-2.0

package event

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/unit"
)

// vendorList is what a vendor's list says of the events used. scripts/check-events.py
// wrote it from that list.
type vendorList struct {
	Table, List, Version string
	CPUs                 []string
	Events               map[string]struct {
		Event, UMask, CMask, Inv, Edge, Config1, RdWrMask uint64
	}
}

func vendorLists(t *testing.T) []vendorList {
	t.Helper()
	data, err := os.ReadFile("testdata/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vendorList
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every event of every table has the code that its vendor's list has for its name.
func TestVendorsLists(t *testing.T) {
	compared := 0
	listed := map[string]bool{"lab": true, GenericName: true}
	for _, l := range vendorLists(t) {
		table, ok := ByName(l.Table)
		if !ok {
			t.Errorf("a list of %s, which is no table", l.Table)
			continue
		}
		listed[l.Table] = true
		for _, r := range table.Readings {
			for _, c := range r.Counts {
				for _, e := range eventsOf(c) {
					if e.Kernel != "" {
						continue
					}
					compared++
					var want Code
					for _, name := range e.Names {
						v, ok := l.Events[name]
						if !ok {
							t.Errorf("%s: %s is not in %s", l.Table, name, l.List)
						}
						want.Event, want.UMask, want.CMask = v.Event, want.UMask|v.UMask, want.CMask|v.CMask
						want.Inv, want.Edge, want.Config1 = want.Inv || v.Inv != 0, want.Edge || v.Edge != 0, want.Config1|v.Config1
					}
					if e.Without != "" {
						want.Config1 &^= l.Events[e.Without].Config1 & answers
					}
					if e.Code != want {
						t.Errorf("%s: %s is %+v, in %s %s %+v", l.Table, e.Name(), e.Code, l.List, l.Version, want)
					}
				}
			}
		}
	}
	for _, table := range All() {
		if !listed[table.Name] {
			t.Errorf("%s was compared with no list", table.Name)
		}
	}
	if compared < 100 {
		t.Errorf("%d events were compared", compared)
	}
}

// eventsOf are the events of a count, its leader first.
func eventsOf(c Count) []Event {
	if c.Leader != nil {
		return append([]Event{*c.Leader}, c.Events...)
	}
	return c.Events
}

// The same of the memory controllers' events, whose terms are in sysfs' words.
func TestVendorsControllers(t *testing.T) {
	compared := 0
	for _, l := range vendorLists(t) {
		table, _ := ByName(l.Table)
		for _, c := range table.Controllers {
			for _, e := range slices.Concat(c.Reads, c.Writes, c.All) {
				if e.Terms == "" {
					continue // sysfs names it
				}
				v, ok := l.Events[e.Name]
				want := fmt.Sprintf("event=%#02x", v.Event)
				if v.Event < 0x10 {
					want = fmt.Sprintf("event=0x%02x", v.Event)
				}
				if v.UMask != 0 {
					want += fmt.Sprintf(",umask=%#02x", v.UMask)
				}
				if v.RdWrMask != 0 {
					want += fmt.Sprintf(",rdwrmask=%#x", v.RdWrMask)
				}
				if compared++; !ok || e.Terms != want {
					t.Errorf("%s: %s is %q, in %s %q (%v)", l.Table, e.Name, e.Terms, l.List, want, ok)
				}
			}
		}
	}
	if compared < 8 {
		t.Errorf("%d events of memory controllers were compared", compared)
	}
}

// The lab's codes are those of its header.
func TestLabsHeader(t *testing.T) {
	data, err := os.ReadFile("../../lab/include/homenode_lab.h")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define (HOMENODE_EV_\w+)\s+(0x[0-9a-f]+|\([^)]*\))`).FindAllStringSubmatch(string(data), -1) {
		codes[m[1]] = m[2]
	}
	codes["HOMENODE_EV_UNCORE_CRITICAL"] = strings.NewReplacer("(1ULL << 24 | 0x0860)", "0x01000860").Replace(codes["HOMENODE_EV_UNCORE_CRITICAL"])
	lab, _ := ByName("lab")
	compared := 0
	for _, r := range lab.Readings {
		for _, c := range r.Counts {
			for _, e := range c.Events {
				if e.Kernel == "" {
					compared++
					if want, err := strconv.ParseUint(codes[e.Name()], 0, 64); err != nil || want != e.Config {
						t.Errorf("%s is %#x, in the header %q", e.Name(), e.Config, codes[e.Name()])
					}
				}
			}
		}
	}
	if compared != int(nFields)-2 {
		t.Errorf("%d events were compared", compared)
	}
}

// A table takes only CPUs that the vendor's own map gives this list, and of those with
// steppings all and only the right ones.
func TestVendorsMaps(t *testing.T) {
	type line struct {
		cpus     *regexp.Regexp
		stepping bool
		table    string
	}
	// Tables are in the order of names: Zen 1 comes before Zen 2, whose pattern takes the
	// whole family, as Zen 3 before 4.
	var maps []line
	arm := map[string]string{}
	for _, l := range vendorLists(t) {
		for _, p := range l.CPUs {
			switch {
			case strings.HasSuffix(p, anyRevision): // TestVendorsPVRs
			case strings.HasPrefix(p, "0x"):
				arm[p] = l.Table
			default:
				maps = append(maps, line{whole(p), strings.HasPrefix(p, "GenuineIntel") && strings.Count(p, "-") > 2, l.Table})
			}
		}
	}
	first := func(c CPU) string {
		id := c.Vendor + "-" + strconv.Itoa(c.Family) + "-" + strings.ToUpper(strconv.FormatInt(int64(c.Model), 16))
		for _, m := range maps {
			with := id
			if m.stepping {
				with += "-" + strings.ToUpper(strconv.FormatInt(int64(c.Stepping), 16))
			}
			if m.cpus.MatchString(with) {
				return m.table
			}
		}
		return GenericName
	}
	taken := map[string]int{}
	for _, vendor := range []string{"GenuineIntel", "AuthenticAMD"} {
		for _, family := range []int{6, 15, 23, 25, 26} {
			for model := range 256 {
				for stepping := range 16 {
					c := CPU{Vendor: vendor, Family: family, Model: model, Stepping: stepping}
					got := For(c).Name
					if want := first(c); got != GenericName && got != want {
						t.Fatalf("%s: %s, the vendor's map says %s", c.Describe(), got, want)
					} else if got == GenericName && vendor == "GenuineIntel" && want != GenericName {
						t.Fatalf("%s: no table, the vendor's map says %s", c.Describe(), want)
					}
					taken[got]++
				}
			}
		}
	}
	for id, table := range arm {
		n, err := strconv.ParseInt(id, 0, 64) // implementer, 12 bits of part
		if got := For(CPU{Implementer: int(n >> 12), Part: int(n & 0xfff)}).Name; err != nil || got != table {
			t.Errorf("%s: %s, want %s", id, got, table)
		}
	}
	if len(arm) != 9 || taken["intel-skx"] != 5 || taken["intel-clx"] != 11 || taken["amd-zen4"] != 3*16*16 {
		t.Errorf("%d Arm, %v", len(arm), taken)
	}
}

const anyRevision = "[[:xdigit:]]{4}" // the lower half of a PVR

// The same of POWER: all PVRs of the map have a table, and no others.
func TestVendorsPVRs(t *testing.T) {
	want := map[int]string{}
	for _, l := range vendorLists(t) {
		for _, p := range l.CPUs {
			if upper, ok := strings.CutSuffix(p, anyRevision); ok {
				version, err := strconv.ParseUint(upper, 0, 16)
				if err != nil {
					t.Errorf("%s: %v", p, err)
				}
				want[int(version)] = l.Table
			}
		}
	}
	for version := 1; version < 1<<16; version++ {
		if got := For(CPU{PVR: version}).Name; got != cmp.Or(want[version], GenericName) {
			t.Errorf("PVR %#04x: %s, the vendor's map says %q", version, got, want[version])
		}
	}
	if len(want) != 3 {
		t.Errorf("%v", want)
	}
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

func TestNoTwoTablesForOneCPU(t *testing.T) {
	all := All()
	if len(all) != 27 {
		t.Errorf("%d tables", len(all))
	}
	serves := func(c CPU) (names []string) {
		for _, table := range all {
			if slices.ContainsFunc(table.CPUs, func(m Match) bool { return m.Takes(c) }) {
				names = append(names, table.Name)
			}
		}
		return names
	}
	for _, table := range all {
		for _, m := range table.CPUs {
			c := CPU{Vendor: m.Vendor, Family: m.Family, Implementer: m.Implementer, Part: m.Part, PVR: m.PVR, Identifier: m.Identifier}
			for _, p := range append(slices.Clone(m.Models), Range{}) {
				for c.Model = p.Low; c.Model <= p.High; c.Model++ {
					for c.Stepping = range 16 {
						if got := serves(c); len(got) > 1 {
							t.Fatalf("%s: %v", c.Describe(), got)
						}
					}
				}
			}
		}
	}
}

func TestFor(t *testing.T) {
	intel := func(model, stepping int) CPU {
		return CPU{Vendor: "GenuineIntel", Family: 6, Model: model, Stepping: stepping}
	}
	amd := func(family, model int) CPU { return CPU{Vendor: "AuthenticAMD", Family: family, Model: model} }
	for _, c := range []struct {
		cpu  CPU
		want string
		what string
	}{
		{intel(0x55, 4), "intel-skx", "Gold 6148"}, {intel(0x55, 7), "intel-clx", "Gold 6248"}, {intel(0x55, 11), "intel-clx", "Cooper Lake"},
		{intel(0x6a, 6), "intel-icx", "Platinum 8380"}, {intel(0x6c, 1), "intel-icx", "Ice Lake-D"}, {intel(0x8f, 8), "intel-spr", "Platinum 8480+"},
		{intel(0xcf, 2), "intel-emr", "Platinum 8592+"}, {intel(0xad, 1), "intel-gnr", "6980P"},
		{amd(23, 0x31), "amd-zen2", "EPYC 7742"}, {amd(25, 0x01), "amd-zen3", "EPYC 7763"}, {amd(25, 0x11), "amd-zen4", "EPYC 9654"},
		{amd(25, 0xa0), "amd-zen4", "EPYC 9754"}, {amd(26, 0x02), "amd-zen5", "EPYC 9755"}, {amd(26, 0x11), "amd-zen5", "EPYC 9965"},
		{CPU{Implementer: 0x41, Part: 0xd0c}, "arm-neoverse-n1", "Altra"}, {CPU{Implementer: 0x41, Part: 0xd4f}, "arm-neoverse-v2", "Grace"},
		{intel(0x3f, 2), "intel-hsx", "E5-2699 v3"}, {intel(0x4f, 1), "intel-bdx", "E5-2699 v4"}, {intel(0xaf, 3), "intel-srf", "6780E"}, {intel(0xdd, 0), "intel-cwf", "Clearwater Forest"},
		{amd(25, 0x90), "amd-zen4", "MI300A"}, {amd(23, 0x01), "amd-zen1", "EPYC 7601"},
		{CPU{Implementer: 0x6d, Part: 0xd49}, "arm-neoverse-n2", "Cobalt 100"}, {CPU{Implementer: 0x41, Part: 0xd84}, "arm-neoverse-v3", "Neoverse V3"}, {CPU{Implementer: 0x41, Part: 0xd8e}, "arm-neoverse-n3", "Neoverse N3"},
		{CPU{Implementer: 0xc0, Part: 0xac3}, "arm-ampereone", "AmpereOne"}, {CPU{Implementer: 0xc0, Part: 0xac4}, "arm-ampereone", "AmpereOne X"}, {CPU{Implementer: 0x48, Part: 0xd01}, "arm-kunpeng-920", "Kunpeng 920"},
		{CPU{Vendor: "GenuineIntel", Family: 6, Model: 0x8f, Identifier: "homenode-lab v1"}, "lab", "the lab's guest"},

		{intel(0x5e, 3), GenericName, "Skylake, desktop"}, {intel(0x97, 2), GenericName, "Alder Lake, hybrid"}, {intel(0xb7, 1), GenericName, "Raptor Lake, hybrid"},
		{intel(0xaa, 4), GenericName, "Meteor Lake, hybrid"}, {intel(0xc6, 2), GenericName, "Arrow Lake, hybrid"}, {intel(0x56, 3), GenericName, "Broadwell-DE, one package"}, {intel(0x3e, 4), GenericName, "Ivy Bridge-EP"},
		{amd(23, 0x71), GenericName, "Ryzen 3900X"}, {amd(25, 0x21), GenericName, "Ryzen 5950X"}, {amd(25, 0x61), GenericName, "Ryzen 7950X"}, {amd(26, 0x44), GenericName, "Ryzen 9950X"},
		{amd(23, 0x11), GenericName, "Ryzen 2400G, Zen 1"}, {amd(26, 0x50), GenericName, "Zen 6"},
		{CPU{Vendor: "HygonGenuine", Family: 24, Model: 1}, "amd-zen1", "Hygon 7285"}, {CPU{Vendor: "HygonGenuine", Family: 24, Model: 4}, GenericName, "a later Hygon"},
		{CPU{Vendor: "HygonGenuine", Family: 23, Model: 1}, GenericName, "another family of Hygon's"}, {CPU{Vendor: "AuthenticAMD", Family: 24, Model: 1}, GenericName, "Hygon's family of another vendor"},
		{CPU{PVR: 0x4e}, "power9", "S924"}, {CPU{PVR: 0x80}, "power10", "E1080"}, {CPU{PVR: 0x82}, "power10", "Power11"}, {CPU{PVR: 0x4d}, GenericName, "POWER8"}, {CPU{PVR: 0x4e, Mixed: true}, GenericName, "several kinds of POWER"},
		{CPU{Vendor: "GenuineIntel", Family: 15, Model: 0x55}, GenericName, "another family"},
		{CPU{Implementer: 0x41, Part: 0xd0b}, GenericName, "Cortex-A76"}, {CPU{Implementer: 0x6d, Part: 0xd0c}, GenericName, "another part of Cobalt's implementer"},
		{CPU{Implementer: 0x41, Part: 0xd0c, Mixed: true}, GenericName, "several kinds"}, {CPU{}, GenericName, "nothing known"},
	} {
		if got := For(c.cpu); got.Name != c.want {
			t.Errorf("%s (%s): %s, want %s", c.what, c.cpu.Describe(), got.Name, c.want)
		}
	}
}

// Codes as they were before they were data, and those that need more than 16 bits.
func TestConfig(t *testing.T) {
	for _, c := range []struct {
		table string
		field Field
		want  []uint64
	}{
		{"lab", StallCycles, []uint64{0x14a3}}, {"lab", LocalLoads, []uint64{0x01d3}}, {"lab", UncoreRequests, []uint64{0x80b0}}, {"lab", UncoreWaits, []uint64{0x1000860}},
		{"intel-skx", StallCycles, []uint64{0x140014a3}}, {"intel-clx", RemoteLoads, []uint64{0x02d3}}, {"intel-spr", StallCycles, []uint64{0x050021a6}},
		{"intel-skx", UncoreRequests, []uint64{0x08b0}}, {"intel-gnr", UncoreWaits, []uint64{0x1000820}},
		{"amd-zen2", RemoteLoads, []uint64{0x4043}}, {"amd-zen4", StallCycles, []uint64{0xa2d6}}, {"amd-zen5", UncoreRequests, []uint64{0x0964, 0x1f71, 0x1f72}},
		{"power9", Cycles, []uint64{0x200f4}}, {"power9", LocalLoads, []uint64{0x2c048}}, {"power9", RemoteLoads, []uint64{0x3c04a, 0x4c04c}},
		{"power10", Cycles, []uint64{0}}, {"power10", StallCycles, []uint64{0x2c018}}, {"power10", LocalLoads, []uint64{0x94040000000c040}}, {"power10", RemoteLoads, []uint64{0xd4040000000c040, 0xf4040000000c040}},
		{"amd-zen3", LLCMisses, []uint64{0x5c44}}, {"arm-neoverse-v1", StallCycles, []uint64{0x4005}}, {"generic", Instructions, []uint64{1}},
	} {
		table, ok := ByName(c.table)
		if !ok {
			t.Fatalf("no table %s", c.table)
		}
		count, why, ok := table.Best(c.field)
		var got []uint64
		for _, e := range count.Events {
			got = append(got, e.Config)
		}
		if !ok || !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %#x, %v %s; want %#x", c.table, c.field, got, ok, why, c.want)
		}
	}
	zen5, _ := ByName("amd-zen5")
	if got := zen5.Readings[LocalLoads].Counts[0].Events[0].Config; got != 1<<32|0x0865 {
		t.Errorf("an event of 12 bits: %#x", got)
	}
	n1, _ := ByName("arm-neoverse-n1")
	if _, why, ok := n1.Best(LocalLoads); ok || !strings.Contains(why, "REMOTE_ACCESS") {
		t.Errorf("N1 tells local from remote: %v %s", ok, why)
	}
	if _, _, ok := n1.Best(nFields); ok {
		t.Error("a field that is none")
	}
}

// Where local is known, remote is known, too, in as many ways, and both of the same kind
// of event: they are used as a ratio. The same holds for the uncore penalty's terms.
func TestPairs(t *testing.T) {
	for _, table := range All() {
		local, remote := table.Readings[LocalLoads].Counts, table.Readings[RemoteLoads].Counts
		if len(local) != len(remote) {
			t.Errorf("%s: %d ways to count local reads, %d remote ones", table.Name, len(local), len(remote))
		}
		for i := range min(len(local), len(remote)) {
			for _, e := range remote[i].Events {
				if local[i].Near != remote[i].Near || local[i].Writes != remote[i].Writes || !apart(table.Format, local[i].Events[0].Code, e.Code) {
					t.Errorf("%s: %s and %s are not of one kind, or count the same twice", table.Name, local[i].Name(), e.Name())
				}
			}
		}
		_, _, waits := table.Best(UncoreWaits)
		if _, _, requests := table.Best(UncoreRequests); waits && !requests {
			t.Errorf("%s: waits without requests", table.Name)
		}
		hardware := table.How == unit.HowMeasured && table.Name != GenericName
		if hardware != (table.Note == "never run on hardware") {
			t.Errorf("%s: %v, note %q", table.Name, table.How, table.Note)
		}
	}
}

const answers = 0x7fff0000 // of OFFCORE_RSP

// source are the bits of a code of POWER for where a line came from: of POWER9 the counter
// and the last four, of POWER10 the match of MMCR3 (power10-pmu.c).
const source = 0xf<<16 | 0xf | 0xfff<<48

// apart reports that two codes are of one event and count no request twice. OFFCORE_RSP
// has the kinds of requests in bits 0 to 15, who answered in bits 16 to 30.
func apart(f Format, a, b Code) bool {
	if f == Power {
		return a.Event&^source == b.Event&^source && a.Event != b.Event
	}
	if a.Config1 == 0 && b.Config1 == 0 {
		return a.Event == b.Event && a.UMask&b.UMask == 0
	}
	const requests = 0xffff
	return a.Event == b.Event && a.UMask == b.UMask && a.Config1&requests == b.Config1&requests &&
		a.Config1&answers&b.Config1 == 0 && a.Config1&answers != 0 && b.Config1&answers != 0
}

const small = `{"name": "x", "title": "X", "format": "amd", "how": "measured", "line_bytes": 64, "cpus": [{"vendor": "V", "family": 1, "models": "0x1,0x3-4"}],
"sources": [{"title": "T", "version": "1"}], "fields": [
FIRST,
` + `{"field": "instructions", "why": "w"}, {"field": "stall_cycles", "why": "w"}, {"field": "local_loads", "why": "w"}, {"field": "remote_loads", "why": "w"},
{"field": "l2_misses", "why": "w"}, {"field": "llc_misses", "why": "w"}, {"field": "uncore_requests", "why": "w"}, {"field": "uncore_outstanding", "why": "w"},
{"field": "uncore_waits", "why": "w"}, {"field": "load_samples", "why": "w"}, {"field": "store_samples", "why": "w"}]}`

const cyclesLine = `{"field": "cycles", "counts": [{"sum": [{"name": "N", "event": "0x1a5", "umask": "0x2", "cmask": 3, "inv": true, "edge": true}], "note": "n"}]}`

func TestParse(t *testing.T) {
	good := strings.Replace(small, "FIRST", cyclesLine, 1)
	table, err := Parse("x.json", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{Names: []string{"N"}, Code: Code{Event: 0x1a5, UMask: 2, CMask: 3, Inv: true, Edge: true}, Type: TypeRaw, Config: 1<<32 | 3<<24 | 1<<23 | 1<<18 | 0x02a5}
	if got := table.Readings[Cycles].Counts[0]; got.Note != "n" || !reflect.DeepEqual(got.Events[0], want) {
		t.Errorf("%+v", got)
	}
	if m := table.CPUs[0]; !m.Models.has(3) || m.Models.has(2) || m.String() != "V family 1 model 0x01,0x03-0x04" {
		t.Errorf("%+v, %s", m, m)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"0x1a5"`, `"0x11a5"`, "more than format"}, {`"0x2"`, `"0x102"`, "more than format"}, {`"cmask": 3`, `"cmask": 256`, "more than format"},
		{`"0x1a5"`, `"x"`, "fields[0].counts[0].sum[0]"}, {`"0x1a5"`, `421`, "line 3"}, {`"name": "N", `, ``, "needs its name"}, {`"name": "N"`, `"name": "N", "names": ["M"]`, "needs its name"},
		{`"name": "N"`, `"kernel": "cpu-cycles"`, "nothing else"}, {`"note": "n"`, `"nota": "n"`, "unknown field"},
		{`"field": "cycles"`, `"field": "cycels"`, "the place of cycles"}, {`"field": "cycles"`, `"field": "cycles", "why": "w"`, "either counts or a why"},
		{`{"field": "instructions", "why": "w"}, `, ``, "there are 11"}, {`"measured"`, `"guessed"`, "how"}, {`"measured"`, `"estimated"`, "how"},
		{`"line_bytes": 64`, `"line_bytes": 65`, "power of two"}, {`"format": "amd"`, `"format": "mips"`, "want intel"}, {`"format": "amd"`, `"format": "power"`, "more than format"}, {`"0x1,0x3-4"`, `"0x3,0x1"`, "not ascending"},
		{`"0x1,0x3-4"`, `"4-3"`, "want numbers"}, {`"family": 1, `, ``, "want vendor"}, {`"vendor": "V"`, `"implementer": "0x41"`, "want vendor"},
		{`"vendor": "V", "family": 1, "models": "0x1,0x3-4"`, `"pvr": "0x4e", "part": "0x1"`, "want vendor"}, {`"vendor": "V"`, `"vendor": "V", "pvr": "0x4e"`, "want vendor"}, {`"vendor": "V"`, `"pvr": "4e"`, "want a number"},
		{`"version": "1"`, `"version": ""`, "needs a title and a version"}, {`"title": "X"`, `"title": ""`, "needs a name"}, {`"why": "w"}]}`, `"why": "w"}]} {}`, "more after"},
		{`"sum": [{`, `"sum": [[{`, "line 3"}, {`"note": "n"`, `"note" "n"`, "line 3"},
		{`"cmask": 3`, `"config1": "0x1"`, "more than format"}, {`"cmask": 3`, `"config1": "one"`, "want a number"}, {`"cmask": 3`, `"without": "M"`, "only events with config1"},
		{`"note": "n"`, `"near": "node"`, "cycles has none"}, {`"note": "n"`, `"leader": {"name": "L", "event": "0x3"}`, "only samples"},
		{`{"field": "local_loads", "why": "w"}`, `{"field": "local_loads", "counts": [{"sum": [{"name": "L", "event": "0x1"}]}]}`, "want node, package or unknown"},
		{`"sources"`, `"controllers": [{"pmu": "../x", "reads": [{"name": "R"}]}], "sources"`, "want a name as uncore_imc"},
		{`"sources"`, `"controllers": [{"pmu": "umc"}], "sources"`, "controllers[0]: want reads"},
		{`"sources"`, `"controllers": [{"pmu": "umc", "reads": [{"name": "R"}], "all": [{"name": "A"}]}], "sources"`, "want reads"},
		{`"sources"`, `"controllers": [{"pmu": "umc", "reads": [{"name": "../R"}]}], "sources"`, "want a name, terms"},
		{`"sources"`, `"controllers": [{"pmu": "umc", "reads": [{"name": "R", "terms": "event=5"}]}], "sources"`, "want a name, terms"},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		if bad == good {
			t.Fatalf("%s is not in the text", c.from)
		}
		table, err := Parse("x.json", []byte(bad))
		if err == nil || !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.json") || !reflect.DeepEqual(table, Table{}) {
			t.Errorf("%s for %s: %v", c.to, c.from, err)
		}
	}
}

func TestFields(t *testing.T) {
	names := map[string]bool{"": true}
	for f := range nFields {
		if names[f.String()] {
			t.Errorf("%d: a second %q", f, f)
		}
		names[f.String()] = true
	}
}

// What the reads by node leave out is stated at the table: memory behind CXL.
func TestNotesOfOtherMemory(t *testing.T) {
	for _, name := range []string{"amd-zen4", "amd-zen5"} {
		table, _ := ByName(name)
		for _, f := range []Field{LocalLoads, RemoteLoads} {
			if c, _, ok := table.Best(f); !ok || !strings.Contains(c.Note, "CXL") {
				t.Errorf("%s %v: %q", name, f, c.Note)
			}
		}
	}
}

// Loads of these need a group whose leader is the auxiliary event (the kernel's
// mem-loads-aux, event=0x03,umask=0x82); those of others must not have one.
func TestLeadersOfSamples(t *testing.T) {
	leaders := map[string]uint64{"intel-spr": 0x8203, "intel-emr": 0x8203}
	for _, table := range All() {
		loads, _, ok := table.Best(LoadSamples)
		stores, _, ok2 := table.Best(StoreSamples)
		var got uint64
		if loads.Leader != nil {
			got = loads.Leader.Config
		}
		if ok != ok2 || got != leaders[table.Name] || stores.Leader != nil {
			t.Errorf("%s: loads %v, stores %v, leader %#x", table.Name, ok, ok2, got)
		}
	}
	for name, want := range map[string][2]uint64{"intel-icx": {0x1cd, 0x82d0}, "intel-spr": {0x1cd, 0x2cd}, "intel-emr": {0x1cd, 0x2cd}, "intel-gnr": {0x1cd, 0x82d0}} {
		table, _ := ByName(name)
		loads, _, _ := table.Best(LoadSamples)
		stores, _, _ := table.Best(StoreSamples)
		if got := [2]uint64{loads.Events[0].Config, stores.Events[0].Config}; got != want {
			t.Errorf("%s: %#x, want %#x", name, got, want)
		}
	}
}

// From Ice Lake on, reads by node are those of the core's caches: prefetches and reads for
// writing are in them, and near is the node in sub-NUMA clustering, too. What needs no
// register comes second, for guests.
func TestReadsToCore(t *testing.T) {
	for name, want := range map[string][3]uint64{
		"intel-icx": {0x1b7, 0x104000477, 0x738000477}, "intel-spr": {0x12a, 0x104004477, 0x738004477},
		"intel-emr": {0x12a, 0x104004477, 0x738004477}, "intel-gnr": {0x12a, 0x104004477, 0x738004477},
	} {
		table, _ := ByName(name)
		local, _, _ := table.Best(LocalLoads)
		remote, _, _ := table.Best(RemoteLoads)
		l, r := local.Events[0], remote.Events[0]
		if got := [3]uint64{l.Config, l.Code.Config1, r.Code.Config1}; got != want || r.Config != l.Config || !local.Writes || local.Near != NearNode || local.Plain() {
			t.Errorf("%s: %#x, want %#x; %+v", name, got, want, local)
		}
		plain, _, ok := table.Plainest(LocalLoads)
		if !ok || plain.Events[0].Config != 0x1d3 || !plain.Plain() || plain.Near == NearNode {
			t.Errorf("%s without a register: %+v", name, plain)
		}
	}
	if got := PerfTerm(0x12a, 0x104004477); got != "cpu/config=0x12a,config1=0x104004477/" {
		t.Error(got)
	}
	gnr, _ := ByName("intel-gnr")
	if c, _, _ := gnr.Plainest(LocalLoads); c.Near != NearPackage {
		t.Errorf("Granite Rapids' retired loads count by package, not by %s", c.Near)
	}
	zen3, _ := ByName("amd-zen3")
	if c, _, ok := zen3.Plainest(LocalLoads); !ok || c.Near != NearNode {
		t.Errorf("%+v", c)
	}
	if _, why, ok := zen3.Plainest(StallCycles); ok || why == "" {
		t.Error("stalls of Zen 3")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(strings.Replace(small, "FIRST", cyclesLine, 1)))
	for _, name := range []string{"lab", "amd-zen5", "arm-neoverse-v2", "generic", "intel-gnr", "intel-spr", "power10"} {
		data, err := files.ReadFile("tables/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse("x.json", data)
		if err != nil && (!reflect.DeepEqual(table, Table{}) || !errors.Is(err, ErrMalformed)) {
			t.Errorf("%v, and a table", err)
		}
		if err != nil {
			return
		}
		for i, r := range table.Readings {
			if r.Field != Field(i) || (r.Why == "") == (len(r.Counts) == 0) {
				t.Errorf("field %d: %+v", i, r)
			}
		}
	})
}
