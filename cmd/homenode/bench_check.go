// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// empty refuses flags that were given and say nothing: --only "$PARTS" of an unset
// variable would measure everything.
func empty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		if flag.Changed && slices.Contains([]string{"", "[]"}, strings.TrimSpace(flag.Value.String())) {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}

// writable tries where everything goes, before minutes are spent on it.
func (f benchFlags) writable() error {
	if err := canReplace("--out", f.out); err != nil {
		return err
	}
	if f.html != "" && f.html != "-" {
		if err := canReplace("--html", f.html); err != nil {
			return err
		}
	}
	if f.svg == "" {
		return nil
	}
	if err := os.MkdirAll(f.svg, 0o755); err != nil {
		return fmt.Errorf("--svg: make folder for pictures: %w", err)
	}
	return canCreate("--svg "+f.svg, f.svg)
}

// canReplace wants a folder that files can be made in, and nothing there but a file.
func canReplace(flag, path string) error {
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("%s %s: there is no folder %s", flag, path, dir)
	}
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s %s: it is there and not a regular file: name another", flag, path)
	}
	return canCreate(flag+" "+path, dir)
}

func canCreate(what, dir string) error {
	t, err := os.CreateTemp(dir, ".homenode-*")
	if err == nil {
		err = errors.Join(t.Close(), os.Remove(t.Name()))
	}
	if err != nil {
		return fmt.Errorf("%s: make a file in its folder: %w", what, err)
	}
	return nil
}
