// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"reflect"

	"homenode/internal/migration"
	"homenode/internal/report"
	"homenode/internal/unit"
)

// clean returns r with every text fit to be shown: names of cgroups and files come
// from others, and a terminal obeys what it is sent. By reflection, so that no field
// is forgotten; what an Opt holds is not in its reach, and is taken out for it.
func clean(r migration.Report) migration.Report {
	cleanValue(reflect.ValueOf(&r).Elem())
	r.Result, r.After, r.Heat = inside(r.Result), inside(r.After), inside(r.Heat)
	return r
}

func inside[T any](o unit.Opt[T]) unit.Opt[T] {
	v, ok := o.Get()
	if !ok {
		return o
	}
	cleanValue(reflect.ValueOf(&v).Elem())
	return unit.Some(v)
}

// cleanValue cleans in place; slices are copied first, they are the caller's.
func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(report.Printable(v.String()))
	case reflect.Slice:
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		for i := range fresh.Len() {
			cleanValue(fresh.Index(i))
		}
		v.Set(fresh)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() { // not what sets and options hold inside
				cleanValue(v.Field(i))
			}
		}
	}
}
