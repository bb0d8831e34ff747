// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"

	"homenode/internal/bench"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/probe"
	"homenode/internal/lab/model"
)

// openProber is what measures this machine, and what ends it: in the lab by the
// model's clock.
var openProber = func() (bench.Prober, func() error, error) {
	clock, back, err := benchClock()
	if err != nil {
		return nil, nil, err
	}
	p, err := probe.New(kernel.Live(), clock)
	if err != nil {
		return nil, nil, exit.BadInput(errors.Join(err, back()))
	}
	return p, func() error {
		p.Close()
		return back()
	}, nil
}

// benchClock is nil, for the machine's clock, outside the lab. In there it is the
// model's, which has to run: one that is off is paced, and off again afterwards.
func benchClock() (clock probe.Clock, back func() error, err error) {
	back = func() error { return nil }
	m, err := model.Open("/sys")
	if errors.Is(err, fs.ErrPermission) { // the lab, but not for us
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
	return clock, func() error { return m.Switch(model.Off) }, m.Switch(model.Pace)
}
