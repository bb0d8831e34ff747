// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The dashboard has the form that Grafana's own types describe: no field is missing, unknown or
// of another type, down to the options of its panels and the queries of its data source.
func TestDashboardFitsGrafana(t *testing.T) {
	grafana := cog.NewRuntime()
	grafana.RegisterPanelcfgVariant(stat.VariantConfig())
	grafana.RegisterPanelcfgVariant(timeseries.VariantConfig())
	grafana.RegisterPanelcfgVariant(table.VariantConfig())
	grafana.RegisterDataqueryVariant(prometheus.VariantConfig())
	var data []byte
	for _, name := range []string{"fleet", "homenode"} { // fleet's data source is not one of Grafana's own: its queries are not looked at
		var err error
		if data, err = os.ReadFile("../../../deploy/grafana/" + name + ".json"); err != nil {
			t.Fatal(err)
		}
		if wrong := misfit(data); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	for _, wrong := range [][2]string{{`"graphMode"`, `"graphKind"`}, {`"type": "stat"`, `"type": 7`}, {`"schemaVersion": 39`, `"schemaVersion": "39"`}} {
		if misfit([]byte(strings.Replace(string(data), wrong[0], wrong[1], 1))) == "" {
			t.Errorf("%s in place of %s was not noticed", wrong[1], wrong[0])
		}
	}
}

// misfit is what Grafana's types say against a dashboard; "": nothing.
func misfit(data []byte) string {
	var d dashboard.Dashboard                                                //nolint:staticcheck // the form of a file that people import
	if err := d.UnmarshalJSONStrict(data); err != nil && err.Error() != "" { // its list of errors may be empty
		return err.Error()
	}
	if err := d.Validate(); err != nil {
		return err.Error()
	}
	return ""
}
