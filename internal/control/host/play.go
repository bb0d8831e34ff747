// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"homenode/internal/cli"
	"homenode/internal/render"
	"homenode/internal/replay"
	"homenode/internal/window"
)

// decoded is a window, or the error of decoding it.
type decoded struct {
	w      window.Window
	cutOff string
	err    error
}

// Play decodes windows in parallel, because that takes most of the time, and decides
// them in their order.
func Play(ctx context.Context, p *window.Player, f *os.File, r *replay.Replay, stderr *os.File) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	queue := make(chan chan decoded, 4*runtime.GOMAXPROCS(0))
	go feed(ctx, p, queue)
	show := newProgress(stderr, f)
	defer show.line.Clear()
	for n := 1; ; n++ {
		var d decoded
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next, ok := <-queue:
			if !ok {
				return nil
			}
			d = <-next
		}
		if d.err != nil {
			return d.err
		}
		if d.cutOff != "" {
			p.CutOff = d.cutOff
			return nil
		}
		r.Window(d.w)
		show.step(n)
	}
}

// feed reads lines; each is decoded separately, and its place in the queue keeps the
// order.
func feed(ctx context.Context, p *window.Player, queue chan<- chan decoded) {
	defer close(queue)
	for {
		raw, err := p.NextRaw()
		if errors.Is(err, io.EOF) {
			return
		}
		done := make(chan decoded, 1)
		if err != nil {
			done <- decoded{err: err}
		} else {
			go func() {
				var d decoded
				d.w, d.cutOff, d.err = raw.Window()
				done <- d
			}()
		}
		select {
		case queue <- done:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

type progress struct {
	line *cli.StatusLine
	file *os.File
	size int64
	last time.Time
}

func newProgress(out, file *os.File) *progress {
	p := &progress{line: cli.NewTerminalLine(out), file: file, last: time.Now()}
	if st, err := file.Stat(); err == nil {
		p.size = st.Size()
	}
	return p
}

func (p *progress) step(n int) {
	if time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last = time.Now()
	share := ""
	if at, err := p.file.Seek(0, io.SeekCurrent); err == nil && p.size > 0 {
		share = ", " + render.WholePercent(float64(at)/float64(p.size))
	}
	p.line.Show("", fmt.Sprintf("window %d%s", n, share))
}
