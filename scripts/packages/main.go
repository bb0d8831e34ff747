// SPDX-License-Identifier: Apache-2.0

// Command packages makes what a release consists of, in one folder: deb and rpm packages,
// tarballs and container images for each architecture, SBOMs and checksums. The same commit
// gives the same bytes, in whatever folder and at whatever time.
//
//	go build ─▶ stage: a tree as it is installed ─┬─▶ deploy/packages/*.yaml ─▶ deb, rpm
//	                                              ├─▶ tarball
//	                                              ├─▶ image (no daemon, no base)
//	                                              └─▶ SBOM ─▶ SHA256SUMS
//
// It is a module of its own, so that the programs do not depend on what packs them.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// architectures are Go's names, which are Debian's too.
var architectures = []string{"amd64", "arm64"}

// images are the programs that a container runs, and how each begins there.
var images = map[string][]string{
	"homenode":     {"agent", "--config", "/etc/homenode/agent.yaml"},
	"homenode-hub": {"serve", "--config", "/etc/homenode/hub.yaml"},
}

// mostSize is the most that a file of a release may take: larger ones are a mistake.
const mostSize = 15 << 20

// release is what is made, from what, and where.
type release struct {
	source, out, version string
	epoch                time.Time // modification time of every file
}

func main() {
	var r release
	var epoch string
	flag.StringVar(&r.source, "source", ".", "the source tree")
	flag.StringVar(&r.out, "out", "build/packages", "folder for the packages; it is made anew")
	flag.StringVar(&r.version, "version", "", "version (scripts/version.sh)")
	flag.StringVar(&epoch, "epoch", os.Getenv("SOURCE_DATE_EPOCH"), "time of the commit, seconds since 1970")
	flag.Parse()
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err == nil && r.version == "" {
		err = fmt.Errorf("-version is missing")
	}
	r.epoch = time.Unix(seconds, 0).UTC()
	if err == nil {
		err = r.make()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "packages: %v\n", err)
		os.Exit(1)
	}
}

func (r release) make() error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, arch := range architectures {
		stage, err := r.stage(arch)
		if err == nil {
			err = r.pack(stage, arch)
		}
		if err == nil {
			err = os.RemoveAll(stage)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	return r.sum()
}

// pack makes one architecture's files from its stage.
func (r release) pack(stage, arch string) error {
	for _, name := range []string{"homenode", "homenode-hub", "homenode-lab"} {
		for _, format := range []string{"deb", "rpm"} {
			if err := r.packageOf(stage, name, format, arch); err != nil {
				return fmt.Errorf("%s of %s: %w", format, name, err)
			}
		}
		if err := r.sbom(filepath.Join(stage, name, "usr/bin", name), name, arch); err != nil {
			return fmt.Errorf("sbom of %s: %w", name, err)
		}
		if err := r.tarball(stage, name, arch); err != nil {
			return fmt.Errorf("tarball of %s: %w", name, err)
		}
	}
	for name, command := range images {
		if err := r.image(stage, name, arch, command); err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
	}
	return nil
}

// file is the path of one of the release's files.
func (r release) file(name string) string { return filepath.Join(r.out, name) }
