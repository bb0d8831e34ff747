// SPDX-License-Identifier: Apache-2.0

package report

import (
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// cleanMigration returns r with every text safe to show; the value of an Opt is copied for that.
func cleanMigration(r migration.Report) migration.Report {
	r = render.Cleaned(r)
	r.Result, r.After, r.Heat = inside(r.Result), inside(r.After), inside(r.Heat)
	return r
}

func inside[T any](o unit.Opt[T]) unit.Opt[T] {
	v, ok := o.Get()
	return unit.OptOf(render.Cleaned(v), ok)
}
