// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"errors"
	"fmt"
)

// block gathers rows by column, as the protocol sends them.
type block struct {
	columns []column
	at      int
	rows    int
}

type column interface{ all() any } // []uint64, []int64, []float64, []string or []uint8

type columnOf[T any] struct{ values []T }

func (c *columnOf[T]) all() any { return c.values }

// row begins a row; its cells follow in the order of the columns.
func (b *block) row() *block {
	b.at = 0
	b.rows++
	return b
}

func put[T any](b *block, values ...T) {
	for _, v := range values {
		if b.at == len(b.columns) {
			b.columns = append(b.columns, new(columnOf[T]))
		}
		c := b.columns[b.at].(*columnOf[T])
		c.values = append(c.values, v)
		b.at++
	}
}

func (b *block) u64(values ...uint64)  { put(b, values...) }
func (b *block) i64(values ...int64)   { put(b, values...) }
func (b *block) f64(values ...float64) { put(b, values...) }
func (b *block) text(values ...string) { put(b, values...) }
func (b *block) u8(yes bool) {
	if yes {
		put(b, uint8(1))
	} else {
		put(b, uint8(0))
	}
}

// insert sends a block. Servers of 18.16 want the columns listed, and no VALUES.
func (s *Store) insert(ctx context.Context, into string, b block) error {
	if b.rows == 0 {
		return nil
	}
	batch, err := s.native.PrepareBatch(ctx, "INSERT INTO "+into)
	if err != nil {
		return err
	}
	for i, column := range b.columns {
		if err := batch.Column(i).Append(column.all()); err != nil {
			return errors.Join(fmt.Errorf("column %d: %w", i, err), batch.Abort())
		}
	}
	return batch.Send()
}
