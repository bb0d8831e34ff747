// SPDX-License-Identifier: Apache-2.0

package dataset

import "encoding/binary"

// The types of Thrift's compact protocol that a footer needs
// (github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
const (
	thriftI32    = 5
	thriftI64    = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

// thrift is a value in the compact protocol. Fields of a structure come in the order of
// their ids.
type thrift struct {
	b    []byte
	last []int // id of the last field of each open structure
}

// field starts a field. The distance of ids is below 16 in all that is written here.
func (t *thrift) field(id, kind int) {
	open := len(t.last) - 1
	t.b = append(t.b, byte((id-t.last[open])<<4|kind))
	t.last[open] = id
}

func (t *thrift) i32(id int, v int32) {
	t.field(id, thriftI32)
	t.b = binary.AppendVarint(t.b, int64(v)) // zigzag
}

func (t *thrift) i64(id int, v int64) {
	t.field(id, thriftI64)
	t.b = binary.AppendVarint(t.b, v)
}

func (t *thrift) text(id int, v string) {
	t.field(id, thriftBinary)
	t.bare(v)
}

func (t *thrift) bare(v string) {
	t.b = append(binary.AppendUvarint(t.b, uint64(len(v))), v...)
}

func (t *thrift) list(id, kind, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.b = append(t.b, byte(n<<4|kind))
		return
	}
	t.b = binary.AppendUvarint(append(t.b, byte(0xf0|kind)), uint64(n))
}

// in writes a structure: the file itself, an element of a list, or after field.
func (t *thrift) in(fields func()) {
	t.last = append(t.last, 0)
	fields()
	t.b, t.last = append(t.b, 0), t.last[:len(t.last)-1]
}
