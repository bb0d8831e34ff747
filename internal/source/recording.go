// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/unix"
	"homenode/internal/window"
)

// Recording reads a whole recording of windows; one without a window is refused.
func Recording(path string) (window.Recording, error) {
	f, err := unix.OpenNamed(path)
	if err != nil {
		return window.Recording{}, fmt.Errorf("read recording: %w", err)
	}
	defer f.Close()
	rec, err := window.ReadRecording(f)
	if err != nil {
		return window.Recording{}, Explain(path, fmt.Errorf("%s: %w", path, err))
	}
	if len(rec.Windows) == 0 {
		return window.Recording{}, fmt.Errorf("%s: %w", path, ErrNoWindow)
	}
	return rec, nil
}

// ErrNoWindow is of a recording that is its header.
var ErrNoWindow = errors.New("the recording has no window: it ended before its first period did")
