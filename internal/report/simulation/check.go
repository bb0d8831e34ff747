// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// modelled is the only source that a scenario's figures can have.
const modelled = "modelled"

// checkScenario refuses what cannot be shown honestly. An empty result is shown: it says that there
// is nothing.
func checkScenario(r scenario.Result) error {
	if r.Schema > scenario.ResultSchema {
		return fmt.Errorf("show result: schema %d is newer than %d", r.Schema, scenario.ResultSchema)
	}
	if r.How != modelled && !(r.How == "" && len(r.Arms) == 0) {
		return fmt.Errorf("show result: how is %q: a scenario's figures are %s", render.Printable(r.How), modelled)
	}
	if r.Against != "" && !slices.ContainsFunc(r.Arms, func(a scenario.Outcome) bool { return a.Name == r.Against }) && len(r.Arms) > 0 {
		return fmt.Errorf("show result: no arm is called %q, which the others are to be compared with", render.Printable(r.Against))
	}
	if err := checkNumbers("", reflect.ValueOf(r)); err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	return nil
}

// checkNumbers refuses NaN, infinities, negative amounts, and ratios above 1. Only a
// claim's figure may be negative.
func checkNumbers(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Float64, reflect.Int:
		return checkNumber(path, v)
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkNumbers(fmt.Sprintf("%s[%d]", path, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if err := checkNumbers(strings.Trim(path+"."+name, "."), v.Field(i)); err != nil { // fields inside an Opt have no name
				return err
			}
		}
	}
	return nil
}

// most is larger than every figure that a scenario can have: an exabyte, or the age of the
// world in seconds. Larger ones overflow where they are divided and drawn.
const most = 1e18

// rounding is how far a sum of shares may exceed 1.
const rounding = 1e-9

func checkNumber(path string, v reflect.Value) error {
	f := 0.0
	if v.Kind() == reflect.Int {
		f = float64(v.Int())
	} else {
		f = v.Float()
	}
	share := slices.ContainsFunc([]string{"_ratio", "bound_share", "unbound"}, func(end string) bool { return strings.HasSuffix(path, end) })
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return fmt.Errorf("%s is %v, which is no figure", path, f)
	case math.Abs(f) > most:
		return fmt.Errorf("%s is %v, above %v", path, f, most)
	case f < 0 && !strings.HasPrefix(path, "paper_claims["):
		return fmt.Errorf("%s is %v, below 0", path, f)
	case share && f > 1+rounding:
		return fmt.Errorf("%s is %v, above 1", path, f)
	}
	return nil
}
