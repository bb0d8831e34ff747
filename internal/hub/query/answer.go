// SPDX-License-Identifier: Apache-2.0

package query

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
	"homenode/internal/unit"
)

// Schema is the version of Answer.
const Schema = 1

// Answer is a table as JSON.
type Answer struct {
	Schema  int              `json:"schema"`
	Topic   string           `json:"topic"` // "sql": a query
	From    *time.Time       `json:"from"`  // null: a query of its own time
	Until   *time.Time       `json:"until"`
	Columns []Column         `json:"columns"`
	Rows    []map[string]any `json:"rows"`      // by the names of columns; null: unknown
	More    bool             `json:"more_rows"` // there are more than these
}

// Column says what a row has.
type Column struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"` // "": text or a count; "1": a ratio; "time": a moment
	About string `json:"about,omitempty"`
}

// Validate is for schema.Decode.
func (a Answer) Validate() error {
	if a.Schema != Schema {
		return fmt.Errorf("schema is %d, want %d", a.Schema, Schema)
	}
	return nil
}

// AnswerOf is the answer to a question.
func AnswerOf(q store.Question, t store.Table) Answer {
	a := answerOf(string(q.Topic), t)
	a.From, a.Until = &q.From, &q.Until
	return a
}

// SQLAnswer is the answer to a query.
func SQLAnswer(t store.Table) Answer { return answerOf("sql", t) }

func answerOf(topic string, t store.Table) Answer {
	a := Answer{Schema: Schema, Topic: topic, Columns: []Column{}, Rows: []map[string]any{}, More: t.More}
	seen := map[string]int{}
	for _, c := range t.Columns {
		name := schema.Name(c.Name)
		if seen[name]++; seen[name] > 1 { // SQL may give two columns one name
			name += "_" + strconv.Itoa(seen[name])
		}
		a.Columns = append(a.Columns, Column{name, c.Unit, c.About})
	}
	for _, row := range t.Rows {
		out := make(map[string]any, len(row))
		for i, v := range row {
			if i >= len(a.Columns) {
				break
			}
			if _, isTime := v.(time.Time); isTime {
				a.Columns[i].Unit = "time"
			}
			out[a.Columns[i].Name] = plain(v)
		}
		a.Rows = append(a.Rows, out)
	}
	return a
}

// plain is a cell as JSON can hold it.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case string:
		return schema.Name(v)
	case []byte:
		return schema.Name(string(v))
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return v
}

// CSV writes the answer for a spreadsheet, with the names of the columns above. A text that a
// spreadsheet would compute begins with an apostrophe: names come from hosts.
func (a Answer) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := render.Each(a.Columns, func(c Column) string { return c.Name })
	if err := out.Write(line); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for _, row := range a.Rows {
		for i, c := range a.Columns {
			line[i] = csvCell(row[c.Name])
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func csvCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		text := render.Printable(v)
		if strings.IndexAny(text, "=+-@") == 0 {
			return "'" + text
		}
		return text
	}
	return fmt.Sprint(v)
}

// Cell is how a person reads a cell of a column with this unit.
func Cell(kind string, v any) string {
	switch v := v.(type) {
	case nil:
		return render.Unknown
	case string:
		return textCell(kind, v)
	case time.Time:
		return render.Date(v)
	case bool:
		return render.YesNo(unit.Some(v))
	case int64:
		return number(kind, float64(v))
	case int:
		return number(kind, float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return render.Unknown
		}
		return number(kind, v)
	}
	return render.Printable(fmt.Sprint(v))
}

// textCell is a text, a moment, or figures of several nodes with blanks between them.
func textCell(kind, text string) string {
	switch kind {
	case "":
		return render.Printable(text)
	case "time":
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return render.Date(at)
		}
		return render.Printable(text)
	}
	parts := strings.Fields(text)
	for i, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil {
			return render.Printable(text)
		}
		parts[i] = number(kind, v)
	}
	return render.OrUnknown(strings.Join(parts, " | "))
}

func number(kind string, v float64) string {
	switch kind {
	case "1":
		return render.Percent(v)
	case "bytes":
		return render.Bytes(v)
	case "bytes/s":
		return render.Rate(v)
	case "CPUs":
		return render.CPUs(v)
	case "s":
		return render.Seconds(v)
	}
	if v == math.Trunc(v) {
		return render.Commas(v)
	}
	return render.Number(v)
}

// Text prints the answer as a table for a terminal, with the columns that are text at its left.
func (a Answer) Text(w io.Writer, o render.TextOptions) error {
	p := o.Terminal()
	if len(a.Rows) == 0 {
		p.Line("No rows.")
		return p.Flush(w, "answer")
	}
	t := render.Table{Keys: 1}
	for _, c := range a.Columns {
		t.Columns = append(t.Columns, render.Column{Head: strings.ReplaceAll(c.Name, "_", " "), Left: a.isText(c), Most: mostCell})
	}
	if len(t.Columns) > 0 && a.Columns[len(a.Columns)-1].Name == "sentence" {
		a.sentences(&p, t)
	} else {
		t.Rows = a.cells()
		p.Table(t)
	}
	if a.More {
		p.Line("")
		p.Wrapped("", "There are more rows: --most says how many are shown.")
	}
	return p.Flush(w, "answer")
}

// mostCell is how wide a cell is at most, in columns of a terminal.
const mostCell = 48

// isText says that a column has names and words.
func (a Answer) isText(c Column) bool {
	for _, row := range a.Rows {
		if v, isText := row[c.Name].(string); isText && v != "" {
			return c.Unit == "" || c.Unit == "time"
		}
	}
	return false
}

func (a Answer) cells() (rows [][]string) {
	for _, row := range a.Rows {
		rows = append(rows, render.Each(a.Columns, func(c Column) string { return Cell(c.Unit, row[c.Name]) }))
	}
	return rows
}

// sentences prints events: the sentence stands below the other cells, on its own lines.
func (a Answer) sentences(p *render.Terminal, t render.Table) {
	last := len(t.Columns) - 1
	t.Columns = t.Columns[:last]
	for _, cells := range a.cells() {
		var head []string
		for _, text := range cells[:last] {
			if text != "" {
				head = append(head, render.Clip(text, mostCell*2))
			}
		}
		p.Wrapped("", strings.Join(head, " · "))
		p.Paragraph("    ", "    ", render.OrUnknown(cells[last]))
	}
}
