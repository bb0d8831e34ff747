// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"homenode/internal/bench"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/membench"
	"homenode/internal/lab/model"
	"homenode/internal/profile"
)

// Opener returns a prober, and a function that closes it.
type Opener func() (bench.Prober, func() error, error)

// Measure measures into a file. saved says that the file has figures; the error may be
// that the context ended.
func Measure(ctx context.Context, open Opener, o bench.Options, prior profile.Profile, file string, stderr io.Writer) (result profile.Profile, saved bool, err error) {
	p, done, err := open()
	if err != nil {
		return result, false, err
	}
	o.Save = func(p profile.Profile) error {
		data, err := profile.Encode(p)
		if err == nil {
			err = cli.ReplaceFile(file, append(data, '\n'), 0o644)
		}
		saved = saved || err == nil
		return err
	}
	bar := newBar(stderr)
	o.Progress = bar.show
	result, err = bench.Measure(ctx, p, o, prior)
	bar.end()
	return result, saved, errors.Join(err, done())
}

// Live is the prober of this machine, and its close function: in the lab with the
// model's clock.
func Live() (bench.Prober, func() error, error) {
	clock, back, err := clock()
	if err != nil {
		return nil, nil, err
	}
	p, err := membench.New(kernel.Live(), clock)
	if err != nil {
		return nil, nil, exit.BadInput(errors.Join(err, back()))
	}
	return p, func() error {
		p.Close()
		return back()
	}, nil
}

// clock is nil outside the lab, for the machine's clock. In the lab it is the model's,
// which has to be on: if it is off, it is switched on, and off again afterwards.
func clock() (clock membench.Clock, back func() error, err error) {
	back = func() error { return nil }
	m, err := model.Open("/sys")
	if errors.Is(err, fs.ErrPermission) { // the lab, but not permitted for this user
		return nil, nil, exit.BadInput(fmt.Errorf("%w: measure the lab as root", err))
	} else if err != nil {
		return nil, back, nil
	}
	if clock, err = m.ProbeClock(); err != nil {
		return nil, nil, err
	}
	if m.State() != model.Off {
		return clock, back, nil
	}
	return clock, func() error { return m.Switch(model.Off) }, m.Switch(model.On)
}
