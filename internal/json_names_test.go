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

// twoMeanings are names that mean two things in the output of different commands. The list
// may only become shorter: a new name has one meaning. docs/limits.md says so.
var twoMeanings = strings.Fields(`
access all bandwidth before binds bytes cause cgroup change changed class code command cores counts cpus
cycles_per_op decisions detail devices dies distances dropped end from id latency level links load machine
memory memory_bytes mode nodes note online order others ours packages packings paper problems processes ratio
reads reason refused result room rows rules run samples services skipped source stays target threads to type
uncore_penalty undone value values vendor verdict warnings why workloads writes
`)

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
		switch known := slices.Contains(twoMeanings, name); {
		case len(kinds) > 1 && !known:
			t.Errorf("%q means different things: %v", name, kinds)
		case len(kinds) == 1 && known:
			t.Errorf("%q has one meaning now: take it from the list", name)
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
