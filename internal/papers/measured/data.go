// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Row is a line of a table by the names of its columns.
type Row map[string]string

// Data are the three tables.
type Data struct{ Solo, CoRun, Placements []Row }

// mostRows is more than any of the tables has.
const mostRows = 100000

// Read reads a table: a line of names, and lines of as many fields.
func Read(r io.Reader) ([]Row, error) {
	c := csv.NewReader(r)
	names, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("read names of columns: %w", err)
	}
	var rows []Row
	for {
		fields, err := c.Read()
		switch {
		case err == io.EOF:
			return rows, nil
		case err != nil:
			return nil, fmt.Errorf("read row %d: %w", len(rows)+1, err)
		case len(rows) == mostRows:
			return nil, fmt.Errorf("more than %d rows: want a table of measured programs", mostRows)
		}
		row := Row{}
		for i, name := range names {
			row[name] = fields[i]
		}
		rows = append(rows, row)
	}
}

// number is a field; false where it was not measured.
func (r Row) number(name string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(r[name]), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// numbers are several fields; false where one was not measured.
func (r Row) numbers(names ...string) ([]float64, bool) {
	all := make([]float64, len(names))
	for i, name := range names {
		v, ok := r.number(name)
		if !ok {
			return nil, false
		}
		all[i] = v
	}
	return all, true
}

// Section is one table of the report.
type Section struct {
	Title   string
	About   string   // what is compared, with which inputs
	Heads   []string // of Rows
	Rows    [][]string
	Summary []string // a sentence each
	Figures map[string]float64
}
