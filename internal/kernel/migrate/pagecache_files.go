// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"io"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
)

// fileID matches a mapping with a file.
type fileID = pagecache.ID

// pageCache is kernel/pagecache as a finder.
type pageCache struct{ root unix.Root }

func (c pageCache) find(ctx context.Context, pids []int, outside bool) ([]cachedFile, []string, error) {
	files, problems, err := pagecache.Find(c.root, pids, pagecache.Config{Outside: outside, Stop: ctx.Err})
	var all []cachedFile
	for _, f := range files {
		all = append(all, cachedFile{
			ids: append([]fileID{f.ID}, f.Aliases...), name: f.Name, size: f.Size, kind: f.Kind, pageSize: f.PageSize, outside: f.Outside, handle: f,
		})
	}
	return all, problems, err
}

func (c pageCache) open(f cachedFile, from uint64, skip func(offset uint64) bool) (cachedView, error) {
	v, err := pagecache.Open(f.handle.(pagecache.File))
	if err != nil {
		return nil, err
	}
	v.Skip = skip
	v.GoTo(from)
	return pageCacheView{v}, nil
}

type pageCacheView struct{ v *pagecache.View }

func (v pageCacheView) next(ctx context.Context) (window, error) {
	p, err := v.v.Next(ctx)
	if errors.Is(err, pagecache.ErrCut) {
		return window{cut: true}, io.EOF
	}
	return window{addrs: p.Addrs, offsets: p.Offsets}, err
}

func (v pageCacheView) position() uint64 { return v.v.Position() }

func (v pageCacheView) close() error { return v.v.Close() }
