// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"homenode/internal/interference"
	"homenode/internal/policy/vmmap"
	"homenode/internal/source"
	"homenode/internal/window"
)

// Study plays recordings one after the other. cutOff names those that end within a
// window.
func Study(ctx context.Context, files []string, f vmmap.Infer, stderr *os.File) (study *interference.Study, cutOff []string, err error) {
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return nil, nil, fmt.Errorf("read recording: %w", err)
		}
		p, err := window.OpenRecording(in)
		if err == nil {
			if study == nil {
				study = interference.New(p.Machine, f)
			}
			err = studyOne(ctx, study, p, newProgress(stderr, in))
		}
		in.Close()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		if p.CutOff != "" {
			cutOff = append(cutOff, file+": "+p.CutOff)
		}
	}
	return study, cutOff, nil
}

func studyOne(ctx context.Context, study *interference.Study, p *window.Player, show *progress) error {
	defer show.line.Clear()
	if other := study.Another(p.Machine); other != "" {
		return fmt.Errorf("it belongs to another machine: %s", other)
	}
	study.Recording()
	for n := 1; ctx.Err() == nil; n++ {
		w, err := p.Next()
		if errors.Is(err, io.EOF) && n == 1 {
			return source.ErrNoWindow
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = study.Window(w)
		}
		if err != nil {
			return err
		}
		show.step(n)
	}
	return ctx.Err()
}
