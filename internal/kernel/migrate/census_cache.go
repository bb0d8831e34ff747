// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// cache counts the cached pages of files that no process has mapped. Pages of the huge
// page pool stay Hugetlb: the pool has memory of its own.
func (c *counter) cache(ctx context.Context) error {
	for _, f := range c.all {
		if !f.found {
			continue
		}
		err := c.cachedPages(ctx, f)
		c.ask.drop()
		if ctx.Err() != nil {
			return fmt.Errorf("count pages: %w", ctx.Err())
		}
		if err != nil && unix.Classify(err) != unix.ErrGone { // closed meanwhile: not theirs any more
			c.problem("files", err)
		}
	}
	return nil
}

func (c *counter) cachedPages(ctx context.Context, f *countedFile) error {
	v, err := pagecache.Open(f.File)
	if err != nil {
		return err
	}
	defer v.Close()
	base := uint64(unix.PageSize())
	v.Skip = func(offset uint64) bool { return f.mapped.has(offset / base) }
	kind := migration.Cache
	if f.Kind == migration.Hugetlb {
		kind = migration.Hugetlb
	}
	for {
		p, err := v.Next(ctx)
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, pagecache.ErrCut):
			return fmt.Errorf("file %q was cut short while its pages were counted", f.Name)
		case err != nil:
			return err
		}
		about := asked{kind: kind, file: f, bytes: unit.Bytes(p.PageSize)}
		for _, addr := range p.Addrs {
			if err := c.askAbout(0, uint64(addr), about); err != nil {
				return err
			}
		}
		if err := c.answer(0); err != nil { // before the next part takes their place
			return err
		}
	}
}
