// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// field is what a schema says of a name.
type field struct {
	Ref        string           `json:"$ref"`
	Type       any              `json:"type"` // a string
	Unit       string           `json:"x-unit"`
	AnyOf      []field          `json:"anyOf"`
	Items      *field           `json:"items"`
	Properties map[string]field `json:"properties"`
}

// kind is "number", "list of bytes", "object": what a reader has to expect. null is not told:
// every figure may be unknown. A figure is the same whether it says how it is known or not.
func (f field) kind() string {
	switch value, isValue := f.Properties["value"]; {
	case strings.Contains(f.Ref, "/figure_"):
		_, unit, _ := strings.Cut(f.Ref, "/figure_")
		return strings.Replace(unit, "integer", "number", 1)
	case f.Ref != "":
		return "object"
	case len(f.AnyOf) > 0:
		return f.AnyOf[0].kind()
	case f.Unit != "":
		return f.Unit
	case isValue && f.Properties["how"].Type != nil:
		return value.kind()
	case f.Items != nil:
		return "list of " + f.Items.kind()
	case f.Type == "integer":
		return "number"
	}
	text, _ := f.Type.(string)
	return text
}

// unitsOfNames are the ends of names that say a unit, where a type says one too.
var unitsOfNames = map[string]string{"_bytes": "bytes", "_ns": "ns", "_ratio": "ratio"}

// withUnit is the unit of a number by its name: many are plain numbers with the unit there.
func withUnit(name, kind string) string {
	for end, unit := range unitsOfNames {
		if kind == "number" && strings.HasSuffix(name, end) {
			return unit
		}
	}
	if strings.HasSuffix(name, "_per_s") {
		return strings.Replace(kind, "bytes", "number", 1)
	}
	return kind
}

// oneMeaning are names whose form differs between commands although they mean one thing, each
// with the reason. Any other name has one form.
var oneMeaning = map[string]string{
	"bandwidth": "a figure in bytes/s, or the table of such figures by pair of nodes",
	"latency":   "a figure in ns, or the table of such figures by pair of nodes",
	"id":        "names a thing among its kind: the kernel's number for nodes, CPUs, caches and threads, a path or name for workloads",
	"nodes":     "NUMA nodes: a machine, a snapshot and a window describe each; all others name them as a set, 0-3,8",
	"cpus":      "logical CPUs: a machine describes each; all others name them as a set, 0-3,8",
	"dies":      "of a machine: the recorded form lists their CPUs, topo describes each",
	"packages":  "as dies",
	"distances": "SLIT distances: the matrix, or its row beside the node that it is from",

	"cycles_per_op":  "a number; a profile's has the spread of its repeats beside it (median, min, max)",
	"uncore_penalty": "as cycles_per_op",
}

// A name in JSON has one type and one unit, whichever command prints it, and a type that is a
// unit has it in its name.
func TestOneMeaningPerName(t *testing.T) {
	files, err := filepath.Glob("../schema/*.schema.json")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d schemas, %v", len(files), err)
	}
	seen := map[string]map[string]string{} // name, kind, where
	for _, file := range files {
		var doc struct {
			Defs map[string]field `json:"$defs"`
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &doc)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for of, structure := range doc.Defs {
			if strings.HasPrefix(of, "figure_") { // its unit is the unit of what it is in
				continue
			}
			for name, f := range structure.Properties {
				if seen[name] == nil {
					seen[name] = map[string]string{}
				}
				seen[name][withUnit(name, f.kind())] = of
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		kinds := seen[name]
		switch why := oneMeaning[name]; {
		case len(kinds) > 1 && why == "":
			t.Errorf("%q means different things: %v", name, kinds)
		case len(kinds) == 1 && why != "":
			t.Errorf("%q has one form now: take it from the list", name)
		}
		for end, unit := range unitsOfNames {
			for kind, of := range kinds {
				if strings.HasSuffix(name, end) && slices.Contains([]string{"bytes", "ns", "ratio"}, kind) && kind != unit {
					t.Errorf("%q of %s is %s", name, of, kind)
				}
			}
		}
		if of, ok := kinds["ns"]; ok && !strings.HasSuffix(name, "_ns") {
			t.Errorf("%q of %s is nanoseconds, and its name does not say so", name, of)
		}
	}
}

// A reader can use the schemas as they are installed: each is valid, finds the types that it
// refers to in the file beside it, and refuses what a command does not write.
func TestSchemasReferToEachOther(t *testing.T) {
	files, err := filepath.Glob("../schema/*.schema.json")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d schemas, %v", len(files), err)
	}
	c := jsonschema.NewCompiler()
	for _, file := range files {
		form, err := c.Compile(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if base := filepath.Base(file); base == "homenode.schema.json" || base == "homenode-hub.schema.json" || base == "homenode-lab.schema.json" {
			continue // types only
		}
		if form.Validate(map[string]any{"nothing of ours": true}) == nil {
			t.Errorf("%s accepts anything", file)
		}
	}
}
