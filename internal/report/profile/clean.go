// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"reflect"

	"homenode/internal/profile"
	"homenode/internal/report"
)

// clean returns p with every text fit to be shown: it comes from a file, and a
// terminal obeys what it is sent. By reflection, so that no field is forgotten.
func clean(p profile.Profile) profile.Profile {
	v := reflect.ValueOf(&p).Elem()
	cleanValue(v)
	return p
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
