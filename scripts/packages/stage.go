// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// shipped is what a package has besides its program, its manual pages and its completions:
// from the source tree, to where it is installed. A folder is taken whole.
var shipped = map[string]map[string]string{
	"homenode": {
		"deploy/etc/agent.yaml":            "etc/homenode/agent.yaml",
		"deploy/systemd/homenode.service":  "usr/lib/systemd/system/homenode.service",
		"deploy/sysusers.d/homenode.conf":  "usr/lib/sysusers.d/homenode.conf",
		"deploy/sysctl.d/homenode.conf":    "usr/share/doc/homenode/examples/sysctl.d/homenode.conf",
		"deploy/grafana/homenode.json":     "usr/share/homenode/grafana/homenode.json",
		"deploy/prometheus":                "usr/share/homenode/prometheus",
		"schema":                           "usr/share/homenode/schema",
		"lab/shapes":                       "usr/share/homenode/shapes",
		"deploy/packages/copyright":        "usr/share/doc/homenode/copyright",
		"deploy/packages/lintian/homenode": "usr/share/lintian/overrides/homenode",
	},
	"homenode-hub": {
		"deploy/etc/hub.yaml":                  "etc/homenode/hub.yaml",
		"deploy/systemd/homenode-hub.service":  "usr/lib/systemd/system/homenode-hub.service",
		"deploy/sysusers.d/homenode-hub.conf":  "usr/lib/sysusers.d/homenode-hub.conf",
		"deploy/grafana/fleet.json":            "usr/share/homenode-hub/grafana/fleet.json",
		"deploy/packages/copyright":            "usr/share/doc/homenode-hub/copyright",
		"deploy/packages/lintian/homenode-hub": "usr/share/lintian/overrides/homenode-hub",
	},
	"homenode-lab": {
		"lab":                                  "usr/share/homenode-lab/lab",
		"sim/scenarios":                        "usr/share/homenode-lab/sim/scenarios",
		"deploy/packages/copyright":            "usr/share/doc/homenode-lab/copyright",
		"deploy/packages/lintian/homenode-lab": "usr/share/lintian/overrides/homenode-lab",
	},
}

// stage makes a folder with a tree for each package, as it is installed.
func (r release) stage(arch string) (string, error) {
	stage := r.file("stage-" + arch)
	for name, files := range shipped {
		tree := filepath.Join(stage, name)
		if err := r.build(filepath.Join(tree, "usr/bin", name), name, arch, runtime.GOOS); err != nil {
			return "", err
		}
		for from, to := range files {
			if err := r.ship(filepath.Join(r.source, from), filepath.Join(tree, to)); err != nil {
				return "", err
			}
		}
		if err := r.document(tree, name); err != nil {
			return "", err
		}
	}
	if err := apart(stage); err != nil {
		return "", err
	}
	return stage, r.settle(stage)
}

// apart refuses a file that two packages have: they could not be installed on one host.
func apart(stage string) error {
	has := map[string]string{}
	return filepath.WalkDir(stage, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(stage, path)
		if err != nil {
			return err
		}
		name, file, _ := strings.Cut(rel, string(filepath.Separator))
		if other, ok := has[file]; ok {
			return fmt.Errorf("/%s is in %s and in %s: give one of them another name", file, other, name)
		}
		has[file] = name
		return nil
	})
}

// build makes a static program without symbols.
func (r release) build(out, name, arch, system string, more ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X homenode/internal/cli.Version=" + r.version}, more...)
	c := exec.Command("go", append(args, "-o", out, "./cmd/"+name)...)
	c.Dir, c.Stderr = r.source, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=")
	if err := c.Run(); err != nil {
		return fmt.Errorf("go build %s for %s: %w", name, arch, err)
	}
	return nil
}

// ship copies a file, or a folder without what only the build needs.
func (r release) ship(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if base := filepath.Base(path); strings.HasSuffix(base, ".go") || base == ".gitignore" {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return put(filepath.Join(to, rel), data)
	})
}

func put(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// document adds manual pages, completions and the changelog. A program that runs here, with the
// tag reference, writes them: they are the same for each architecture.
func (r release) document(tree, name string) error {
	program := filepath.Join(r.out, "tools", name)
	if _, err := os.Stat(program); err != nil {
		if err := r.build(program, name, runtime.GOARCH, runtime.GOOS, "-tags", "reference"); err != nil {
			return err
		}
	}
	man := filepath.Join(tree, "usr/share/man/man1")
	pages := exec.Command(program, "reference", "--man", man)
	pages.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.epoch.Unix()))
	if out, err := pages.CombinedOutput(); err != nil {
		return fmt.Errorf("%s reference --man: %w: %s", name, err, out)
	}
	if err := compressAll(man); err != nil {
		return err
	}
	for shell, path := range map[string]string{
		"bash": "usr/share/bash-completion/completions/" + name,
		"zsh":  "usr/share/zsh/vendor-completions/_" + name,
		"fish": "usr/share/fish/vendor_completions.d/" + name + ".fish",
	} {
		text, err := exec.Command(program, "completion", shell).Output()
		if err == nil {
			err = put(filepath.Join(tree, path), text)
		}
		if err != nil {
			return fmt.Errorf("%s completion %s: %w", name, shell, err)
		}
	}
	return r.changelog(filepath.Join(tree, "usr/share/doc", name))
}

// changelog is the project's, and the one that Debian's policy asks for.
func (r release) changelog(folder string) error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	debian := fmt.Sprintf("%s (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n",
		filepath.Base(folder), r.version, maintainer, r.epoch.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	for name, data := range map[string][]byte{"changelog": text, "changelog.Debian": []byte(debian)} {
		if err := putCompressed(filepath.Join(folder, name+".gz"), data); err != nil {
			return err
		}
	}
	return nil
}

// maintainer stands in the packages. The project has no address so far: whoever publishes a
// release names one in HOMENODE_MAINTAINER (docs/release.md).
var maintainer = cmp.Or(os.Getenv("HOMENODE_MAINTAINER"), "homenode maintainers <homenode@localhost.localdomain>")

func compressAll(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.1"))
	for _, file := range files {
		var data []byte
		if data, err = os.ReadFile(file); err == nil {
			err = putCompressed(file+".gz", data)
		}
		if err == nil {
			err = os.Remove(file)
		}
		if err != nil {
			break
		}
	}
	return err
}

// putCompressed writes gzip without name or time.
func putCompressed(path string, data []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return put(path, b.Bytes())
}

// settle gives every file the mode and the time that it has in a package, whatever the
// umask was and whenever it was copied.
func (r release) settle(stage string) error {
	return filepath.WalkDir(stage, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() || strings.Contains(path, "/usr/bin/") || isScript(path) {
			mode = 0o755
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		return os.Chtimes(path, r.epoch, r.epoch)
	})
}

func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	_, err = f.Read(head[:])
	return err == nil && string(head[:]) == "#!"
}
