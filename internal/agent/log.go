// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Logger returns a logger whose level and format can change while it is used.
func Logger(w io.Writer, c LogConfig) (*slog.Logger, func(LogConfig)) {
	h := &logHandler{}
	set := func(c LogConfig) {
		o := &slog.HandlerOptions{Level: logLevels[c.Level]}
		var now slog.Handler = slog.NewTextHandler(w, o)
		if c.Format == "json" {
			now = slog.NewJSONHandler(w, o)
		}
		h.now.Store(&now)
	}
	set(c)
	return slog.New(h), set
}

// logHandler passes records to the current handler. Attributes of With are lost: With is
// not used here.
type logHandler struct{ now atomic.Pointer[slog.Handler] }

func (h *logHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return (*h.now.Load()).Enabled(ctx, l)
}
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	return (*h.now.Load()).Handle(ctx, r)
}
func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *logHandler) WithGroup(string) slog.Handler      { return h }
