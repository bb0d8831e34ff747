// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"homenode/internal/exit"
	"homenode/internal/render/picture"
)

// CanReplace checks that path's folder takes files, and that path is free or a
// regular file.
func CanReplace(flag, path string) error {
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("%s %s: there is no folder %s", flag, path, dir)
	}
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s %s: it exists and is not a regular file: name another", flag, path)
	}
	return CanCreate(flag+" "+path, dir)
}

// CanCreate makes a file in a folder and removes it. The error names the flag or
// file by what.
func CanCreate(what, dir string) error {
	t, err := os.CreateTemp(dir, ".homenode-*")
	if err == nil {
		err = errors.Join(t.Close(), os.Remove(t.Name()))
	}
	if err != nil {
		return fmt.Errorf("%s: make a file in its folder: %w", what, err)
	}
	return nil
}

// WriteTo writes a file whole or not at all; "-" is out, "" writes nothing.
func WriteTo(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if path == "-" {
		_, err := out.Write(b.Bytes())
		return err
	}
	return ReplaceFile(path, b.Bytes(), 0o644)
}

// WritePicture draws once, and writes the picture to each of the files that is named, as
// WriteTo does.
func WritePicture(out io.Writer, svg, png, pdf string, draw func(io.Writer) error) error {
	if svg+png+pdf == "" {
		return nil
	}
	var b bytes.Buffer
	if err := draw(&b); err != nil {
		return err
	}
	for _, form := range []struct {
		file  string
		write func(io.Writer, []byte) error
	}{{svg, func(w io.Writer, svg []byte) error { _, err := w.Write(svg); return err }}, {png, picture.PNG}, {pdf, picture.PDF}} {
		if err := WriteTo(out, form.file, func(w io.Writer) error { return form.write(w, b.Bytes()) }); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceFile writes a file whole or not at all, whatever the mode of an older
// file. A link is not followed, and a device such as /dev/null is not replaced.
func ReplaceFile(path string, data []byte, mode fs.FileMode) error {
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return exit.BadInput(fmt.Errorf("write %s: it exists and is not a regular file: name another", path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".homenode-*") // 0600
	if err != nil {
		return exit.BadInput(fmt.Errorf("write %s: %w", path, err))
	}
	defer os.Remove(f.Name()) // already renamed after success
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
