// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	Name   string   `parquet:"name,dict"`
	Number int32    `parquet:"number"`
	Speed  float64  `parquet:"speed_per_s"`
	Maybe  *float64 `parquet:"maybe,optional"`
}

func some(v float64) *float64 { return &v }

// Parity: the library reads what is written here, with its metadata.
func TestLibraryReads(t *testing.T) {
	for _, n := range []int{0, 1, 7, 20, 3000} {
		var rows []row
		for i := range n {
			r := row{Name: fmt.Sprintf("wörk-%d", i%5), Number: int32(-i), Speed: math.Exp(float64(i % 40))}
			if i%3 != 1 {
				r.Maybe = some(float64(i) / 7)
			}
			rows = append(rows, r)
		}
		metadata := []KeyValue{{"homenode.schema", "1"}, {"homenode.machine", "äö"}}
		for i := range 20 { // a list of 15 or more has a header of its own
			metadata = append(metadata, KeyValue{fmt.Sprint("k", i), fmt.Sprint(i)})
		}
		var file bytes.Buffer
		if err := Write(&file, metadata, rows); err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		for _, kv := range metadata {
			if got, ok := f.Lookup(kv.Key); !ok || got != kv.Value {
				t.Errorf("%s is %q, want %q", kv.Key, got, kv.Value)
			}
		}
		back, err := parquet.Read[row](bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil || len(back) != n || n > 0 && !reflect.DeepEqual(back, rows) {
			t.Errorf("%d rows: read back %d: %v: %+v, want %+v; %v", n, len(back), err, back[:min(2, len(back))], rows[:min(2, len(rows))], f.Schema())
		}
	}
}

// A field that is no column is an error, not a hole in the file.
func TestNoColumn(t *testing.T) {
	if err := Write(&bytes.Buffer{}, nil, []struct{ A string }{}); err == nil {
		t.Error("a field without a name is written")
	}
	if err := Write(&bytes.Buffer{}, nil, []struct {
		A []byte `parquet:"a"`
	}{}); err == nil {
		t.Error("a list is written")
	}
	if err := Write(&bytes.Buffer{}, nil, []struct {
		A *float64 `parquet:"a"`
	}{}); err == nil {
		t.Error("a pointer that is not optional is written")
	}
}
