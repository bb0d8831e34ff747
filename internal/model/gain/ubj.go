// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// decodeUBJ reads UBJSON as XGBoost writes it (draft 12: big-endian, keys without 'S', arrays
// with a type and a count). Objects become map[string]any, arrays []any, arrays of numbers with a
// type []float64, numbers float64, which holds each float32 and each int32 exactly. What follows the value is
// an error, as is anything deeper or longer than the file can hold.
func decodeUBJ(data []byte) (any, error) {
	d := ubj{data: data}
	v, err := d.value(0)
	if err == nil && len(d.data) > d.at {
		err = fmt.Errorf("%d bytes follow the model", len(d.data)-d.at)
	}
	if err != nil {
		return nil, fmt.Errorf("UBJSON, byte %d: %w", d.at, err)
	}
	return v, nil
}

// maxDepth is more than a model has (six).
const maxDepth = 16

var errCut = errors.New("the file is cut off")

type ubj struct {
	data []byte
	at   int
}

func (d *ubj) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.data)-d.at {
		return nil, errCut
	}
	d.at += n
	return d.data[d.at-n : d.at], nil
}

func (d *ubj) marker() (byte, error) {
	b, err := d.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// peek is the next byte, 0 at the end.
func (d *ubj) peek() byte {
	if d.at < len(d.data) {
		return d.data[d.at]
	}
	return 0
}

func (d *ubj) value(depth int) (any, error) {
	m, err := d.marker()
	if err != nil {
		return nil, err
	}
	return d.of(m, depth)
}

// of is the value of a type.
func (d *ubj) of(m byte, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	switch m {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case 'S':
		return d.text()
	case 'T', 'F':
		return m == 'T', nil
	case 'Z':
		return nil, nil
	}
	return d.number(m)
}

// widths are the bytes of numbers' types.
var widths = map[byte]int{'i': 1, 'U': 1, 'I': 2, 'l': 4, 'L': 8, 'd': 4, 'D': 8}

func (d *ubj) number(m byte) (float64, error) {
	width, ok := widths[m]
	if !ok {
		return 0, fmt.Errorf("type %q is none that XGBoost writes", m)
	}
	b, err := d.take(width)
	if err != nil {
		return 0, err
	}
	switch m {
	case 'i':
		return float64(int8(b[0])), nil
	case 'U':
		return float64(b[0]), nil
	case 'I':
		return float64(int16(binary.BigEndian.Uint16(b))), nil
	case 'l':
		return float64(int32(binary.BigEndian.Uint32(b))), nil
	case 'L':
		return float64(int64(binary.BigEndian.Uint64(b))), nil
	case 'd':
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b))), nil
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
}

// count is a length: a number with its type.
func (d *ubj) count() (int, error) {
	m, err := d.marker()
	if err != nil {
		return 0, err
	}
	if m == 'd' || m == 'D' {
		return 0, fmt.Errorf("a length of type %q", m)
	}
	n, err := d.number(m)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > float64(len(d.data)) {
		return 0, fmt.Errorf("a length of %v in a file of %d bytes", n, len(d.data))
	}
	return int(n), nil
}

func (d *ubj) text() (string, error) {
	n, err := d.count()
	if err != nil {
		return "", err
	}
	b, err := d.take(n)
	return string(b), err
}

func (d *ubj) object(depth int) (any, error) {
	all := map[string]any{}
	for d.peek() != '}' {
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("%.40q is there twice", key)
		}
		if all[key], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := d.take(1)
	return all, err
}

// array is [#n …, [$t#n … or [ … ].
func (d *ubj) array(depth int) (any, error) {
	var of byte
	if d.peek() == '$' {
		head, err := d.take(2)
		if err != nil {
			return nil, err
		}
		if of = head[1]; d.peek() != '#' {
			return nil, errors.New("an array with a type and without a length")
		}
	}
	if d.peek() != '#' {
		return d.endless(depth)
	}
	if _, err := d.take(1); err != nil {
		return nil, err
	}
	n, err := d.count()
	switch {
	case err != nil:
		return nil, err
	case of != 0:
		return d.numbers(of, n)
	}
	var all []any
	for range n {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (d *ubj) endless(depth int) (any, error) {
	var all []any
	for d.peek() != ']' {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	_, err := d.take(1)
	return all, err
}

func (d *ubj) numbers(of byte, n int) ([]float64, error) {
	width, ok := widths[of]
	if !ok {
		return nil, fmt.Errorf("an array of type %q is none that XGBoost writes", of)
	}
	if n*width > len(d.data)-d.at {
		return nil, errCut
	}
	all := make([]float64, n)
	for i := range all {
		all[i], _ = d.number(of)
	}
	return all, nil
}
