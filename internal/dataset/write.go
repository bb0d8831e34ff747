// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
)

// Parquet's numbers (github.com/apache/parquet-format, parquet.thrift).
const (
	magic = "PAR1"

	int32Type, int64Type, doubleType, bytesType = 1, 2, 5, 6

	required, optional = 0, 1
	utf8, uint64Kind   = 0, 14 // ConvertedType
	plain, rle         = 0, 3
	uncompressed       = 0
	dataPage           = 0
)

// KeyValue is an entry of a file's metadata.
type KeyValue struct{ Key, Value string }

// column is one field of a row: `parquet:"NAME"` or `parquet:"NAME,optional"`.
type column struct {
	name     string
	kind     int32
	optional bool
	offset   int64 // of its page, in the file
	size     int64
}

// Write writes rows as one file. Fields are string, int32, uint64, float64 and *float64 (nil: null).
func Write[T any](to io.Writer, metadata []KeyValue, rows []T) error {
	columns, err := columnsOf(reflect.TypeFor[T]())
	if err != nil {
		return err
	}
	var file bytes.Buffer
	file.WriteString(magic)
	of := reflect.ValueOf(rows)
	for i := range columns {
		columns[i].offset = int64(file.Len())
		writePage(&file, columns[i], i, of)
		columns[i].size = int64(file.Len()) - columns[i].offset
	}
	foot := footer(columns, metadata, int64(len(rows)))
	file.Write(foot)
	file.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(foot))))
	file.WriteString(magic)
	if _, err := to.Write(file.Bytes()); err != nil {
		return fmt.Errorf("write data set: %w", err)
	}
	return nil
}

func columnsOf(row reflect.Type) (all []column, err error) {
	for i := range row.NumField() {
		field := row.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("parquet"), ",")
		c := column{name: name, optional: strings.Contains(options, "optional")}
		switch {
		case field.Type.Kind() == reflect.String:
			c.kind = bytesType
		case field.Type.Kind() == reflect.Int32:
			c.kind = int32Type
		case field.Type.Kind() == reflect.Uint64:
			c.kind = int64Type
		case field.Type.Kind() == reflect.Float64, field.Type == reflect.TypeFor[*float64]():
			c.kind = doubleType
		}
		if c.kind == 0 || name == "" || c.optional != (field.Type.Kind() == reflect.Pointer) {
			return nil, fmt.Errorf("write data set: field %s of %v is no column: this is a defect of homenode", field.Name, row)
		}
		all = append(all, c)
	}
	return all, nil
}

// writePage writes a column's values: which of them are there, if they may be missing, and
// then those.
func writePage(file *bytes.Buffer, c column, field int, rows reflect.Value) {
	var levels, values []byte
	for i := range rows.Len() {
		v := rows.Index(i).Field(field)
		if c.optional {
			levels = append(levels, 1<<1, level(!v.IsNil())) // a run of one
			if v.IsNil() {
				continue
			}
			v = v.Elem()
		}
		values = appendValue(values, v)
	}
	var page []byte
	if c.optional {
		page = append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
	}
	page = append(page, values...)
	var t thrift
	t.in(func() {
		t.i32(1, dataPage)
		t.i32(2, int32(len(page)))
		t.i32(3, int32(len(page)))
		t.field(5, thriftStruct)
		t.in(func() {
			t.i32(1, int32(rows.Len()))
			t.i32(2, plain)
			t.i32(3, rle)
			t.i32(4, rle)
		})
	})
	file.Write(t.b)
	file.Write(page)
}

func level(there bool) byte {
	if there {
		return 1
	}
	return 0
}

func appendValue(to []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return append(binary.LittleEndian.AppendUint32(to, uint32(v.Len())), v.String()...)
	case reflect.Int32:
		return binary.LittleEndian.AppendUint32(to, uint32(v.Int()))
	case reflect.Uint64:
		return binary.LittleEndian.AppendUint64(to, v.Uint())
	default:
		return binary.LittleEndian.AppendUint64(to, math.Float64bits(v.Float()))
	}
}

func footer(columns []column, metadata []KeyValue, rows int64) []byte {
	var t thrift
	t.in(func() {
		t.i32(1, 1)
		t.list(2, thriftStruct, len(columns)+1)
		t.in(func() {
			t.text(4, "row")
			t.i32(5, int32(len(columns)))
		})
		for _, c := range columns {
			t.in(func() { c.schema(&t) })
		}
		t.i64(3, rows)
		t.list(4, thriftStruct, 1)
		t.in(func() { rowGroup(&t, columns, rows) })
		t.list(5, thriftStruct, len(metadata))
		for _, kv := range metadata {
			t.in(func() {
				t.text(1, kv.Key)
				t.text(2, kv.Value)
			})
		}
		t.text(6, "homenode version 1")
	})
	return t.b
}

func (c column) schema(t *thrift) {
	t.i32(1, c.kind)
	repetition := int32(required)
	if c.optional {
		repetition = optional
	}
	t.i32(3, repetition)
	t.text(4, c.name)
	switch c.kind {
	case bytesType:
		t.i32(6, utf8)
	case int64Type:
		t.i32(6, uint64Kind)
	}
}

func rowGroup(t *thrift, columns []column, rows int64) {
	total := int64(0)
	t.list(1, thriftStruct, len(columns))
	for _, c := range columns {
		total += c.size
		t.in(func() {
			t.i64(2, c.offset)
			t.field(3, thriftStruct)
			t.in(func() { c.chunk(t, rows) })
		})
	}
	t.i64(2, total)
	t.i64(3, rows)
}

func (c column) chunk(t *thrift, rows int64) {
	t.i32(1, c.kind)
	t.list(2, thriftI32, 2)
	t.b = binary.AppendVarint(binary.AppendVarint(t.b, plain), rle)
	t.list(3, thriftBinary, 1)
	t.bare(c.name)
	t.i32(4, uncompressed)
	t.i64(5, rows)
	t.i64(6, c.size)
	t.i64(7, c.size)
	t.i64(9, c.offset)
}
