// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats register themselves
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packageOf makes one package from its description in deploy/packages.
func (r release) packageOf(stage, name, format, arch string) error {
	values := map[string]string{
		"VERSION": r.version, "ARCH": arch, "STAGE": filepath.Join(stage, name),
		"SCRIPTS": filepath.Join(r.source, "deploy/packages"), "MAINTAINER": maintainer,
		"EPOCH": r.epoch.Format("2006-01-02T15:04:05Z"),
	}
	text, err := os.ReadFile(filepath.Join(r.source, "deploy/packages", name+".yaml"))
	if err != nil {
		return err
	}
	config, err := nfpm.Parse(strings.NewReader(os.Expand(string(text), func(key string) string { return values[key] })))
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = r.epoch
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info.Target = r.file(packager.ConventionalFileName(info))
	return create(info.Target, func(w io.Writer) error { return packager.Package(info, w) })
}

// create writes a file of the release. One that is too large is an error.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	if st, err := os.Stat(path); err != nil || st.Size() > mostSize {
		return errors.Join(err, fmt.Errorf("%s has %d bytes: at most %d are wanted", path, st.Size(), mostSize))
	}
	return nil
}

// tarball has a package's tree below one folder, with usr/ left out: it may be unpacked
// anywhere.
func (r release) tarball(stage, name, arch string) error {
	top := fmt.Sprintf("%s-%s-linux-%s", name, r.version, arch)
	return create(r.file(top+".tar.gz"), func(out io.Writer) error {
		z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		w := tar.NewWriter(z)
		err = r.addTree(w, filepath.Join(stage, name), func(path string) string {
			if strings.HasPrefix(path, "usr/share/lintian") {
				return ""
			}
			return filepath.Join(top, strings.TrimPrefix(path, "usr/"))
		})
		return errors.Join(err, w.Close(), z.Close())
	})
}

// addTree adds the files of a tree, in the order of their names; rename says under which
// name, and leaves out what it returns "" for.
func (r release) addTree(w *tar.Writer, tree string, rename func(string) string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		to := rename(rel)
		if to == "" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: to, Mode: int64(st.Mode().Perm()), Size: int64(len(data)), ModTime: r.epoch, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
}

// inImage says what of the package an image has: the program, its configuration and its
// licence.
func inImage(path string) string {
	for _, keep := range []string{"usr/bin/*", "etc/homenode/*", "usr/share/doc/*/copyright"} {
		if ok, _ := filepath.Match(keep, path); ok {
			return path
		}
	}
	return ""
}

// image has one layer and no base: the program is static.
func (r release) image(stage, program, arch string, command []string) error {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := errors.Join(r.addTree(w, filepath.Join(stage, program), inImage), w.Close()); err != nil {
		return err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return err
	}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: arch, OS: "linux", Created: v1.Time{Time: r.epoch},
		RootFS: rootFS(img), History: []v1.History{{Created: v1.Time{Time: r.epoch}, CreatedBy: program}},
		Config: v1.Config{
			Entrypoint: []string{"/usr/bin/" + program}, Cmd: command,
			Labels: map[string]string{"org.opencontainers.image.title": program, "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
	})
	if err != nil {
		return err
	}
	tag, err := name.NewTag(program + ":" + strings.NewReplacer("~", "-", "+", "-").Replace(r.version))
	if err != nil {
		return err
	}
	return create(r.file(fmt.Sprintf("%s-%s-image-%s.tar", program, r.version, arch)), func(w io.Writer) error { return tarball.Write(tag, img, w) })
}

func rootFS(img v1.Image) v1.RootFS {
	c, err := img.ConfigFile()
	if err != nil {
		return v1.RootFS{Type: "layers"}
	}
	return c.RootFS
}

// sbom is CycloneDX, of what was linked into the program.
func (r release) sbom(program, name, arch string) error {
	out := r.file(fmt.Sprintf("%s-%s-%s.cdx.json", name, r.version, arch))
	c := exec.Command("go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", "v"+r.version, "-output", absolute(out), absolute(program))
	c.Dir = filepath.Join(r.source, "scripts/packages")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w: %s", err, text)
	}
	return nil
}

func absolute(path string) string {
	if all, err := filepath.Abs(path); err == nil {
		return all
	}
	return path
}

// sum writes SHA256SUMS, for sha256sum --check.
func (r release) sum() error {
	if err := os.RemoveAll(r.file("tools")); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(r.file(e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(r.file("SHA256SUMS"), b.Bytes(), 0o644)
}
