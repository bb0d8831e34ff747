// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"homenode/internal/exit"
	"homenode/internal/lab"
)

// Where files that come with the program may be, the first one counts: the source tree that
// this folder is in, the source tree or the folder that the program was installed in.
//
//	build/lab        build/homenode-lab → build/lab                /var/lib/homenode-lab
//	lab/mixes        build/homenode-lab → lab/mixes                PREFIX/share/homenode-lab/lab/mixes
//	sim/scenarios    build/homenode-lab → sim/scenarios            PREFIX/share/homenode-lab/sim/scenarios

// labHelp is the help of --lab.
const labHelp = "folder of the lab's built files (default: build/lab, that of the program's source tree, or " + installedLab + ")"

// installedLab is where the package's lab is built; see docs/install.md.
const installedLab = "/var/lib/homenode-lab"

// above is the folder above the one that this program is in.
func above() string {
	program, err := os.Executable()
	if err != nil {
		return "/usr"
	}
	return filepath.Dir(filepath.Dir(program))
}

// dataFolder finds a folder of the source tree; "" if it is nowhere.
func dataFolder(up, tree string) string {
	return firstFolder(tree, filepath.Join(up, tree), filepath.Join(up, "share/homenode-lab", tree))
}

func firstFolder(folders ...string) string {
	for _, f := range folders {
		if st, err := os.Stat(f); err == nil && st.IsDir() {
			return f
		}
	}
	return ""
}

// labAssets finds the built lab. named is the value of --lab.
func labAssets(up, named string) (lab.Assets, error) {
	if named != "" {
		return lab.FindAssets(named)
	}
	places := []string{"build/lab", filepath.Join(up, "build/lab"), installedLab}
	if found := firstFolder(places...); found != "" {
		return lab.FindAssets(found)
	}
	build := "'make lab' in a source tree"
	if script := filepath.Join(up, "share/homenode-lab/lab/build.sh"); isFile(script) {
		build = fmt.Sprintf("'%s %s' as root on Debian 12", script, installedLab)
	}
	return lab.Assets{}, fmt.Errorf("find the lab: it is in none of %s: build it with %s, or name its folder with --lab: %w", strings.Join(places, ", "), build, lab.ErrNotInstalled)
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// mixesFolder is the folder of the mixes. named is the value of --mixes.
func mixesFolder(up, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if found := dataFolder(up, "lab/mixes"); found != "" {
		return found, nil
	}
	return "", exit.BadInput(fmt.Errorf("find the mixes: neither lab/mixes nor %s/share/homenode-lab/lab/mixes: name a folder with --mixes, or a file with --mix", up))
}

// scenarioFile is a path, or the name of a scenario that comes with the program.
func scenarioFile(up, name string) string {
	if strings.ContainsAny(name, "/.") || isFile(name) {
		return name
	}
	if found := dataFolder(up, "sim/scenarios"); found != "" && isFile(filepath.Join(found, name+".yaml")) {
		return filepath.Join(found, name+".yaml")
	}
	return name
}
