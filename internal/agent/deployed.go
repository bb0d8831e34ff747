// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
	"homenode/internal/profiling"
)

// TrialJournal is the folder of the journal of a service's trials: an agent has its own. It is of this
// boot, as the settings are that it has.
func TrialJournal(stateDir, service string) string {
	return filepath.Join(stateDir, trialJournalsDir, unix.FileName(service))
}

// trialJournals are the journals of trials that there are.
func trialJournals(stateDir string) (dirs []string) {
	all, _ := os.ReadDir(filepath.Join(stateDir, trialJournalsDir)) // none: nothing was tried
	for _, d := range all {
		dir := filepath.Join(stateDir, trialJournalsDir, d.Name())
		if journal.In(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

const (
	trialJournalsDir = "deploy"
	deploymentSuffix = ".json"
	mostDeployments  = 1000
)

// DeploymentFile is the file of a service's deployment.
func DeploymentFile(folder, service string) string {
	return filepath.Join(folder, unix.FileName(service)+deploymentSuffix)
}

// Deployments are those of the folder. What cannot be read is an error beside the others.
func Deployments(folder string) (all []profiling.Deployment, err error) {
	if folder == "" {
		return nil, nil
	}
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read deployments: %w", err)
	}
	var problems []error
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), deploymentSuffix) || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		if len(all) == mostDeployments {
			problems = append(problems, fmt.Errorf("read deployments: %s has more than %d: 'homenode deploy forget' removes one", folder, mostDeployments))
			break
		}
		if d, err := ReadDeployment(filepath.Join(folder, f.Name())); err != nil {
			problems = append(problems, err)
		} else {
			all = append(all, d)
		}
	}
	return all, errors.Join(problems...)
}

// ReadDeployment reads a file, and refuses one of another service's name: two files would say
// different things of one service.
func ReadDeployment(file string) (profiling.Deployment, error) {
	data, err := unix.ReadAtMost(file, profiling.MaxDeployment)
	if err != nil {
		return profiling.Deployment{}, fmt.Errorf("read a deployment: %w", err)
	}
	d, err := profiling.DecodeDeployment(data)
	if err == nil && unix.FileName(d.Service)+deploymentSuffix != filepath.Base(file) {
		err = fmt.Errorf("it is of service %q", d.Service)
	}
	if err != nil {
		return d, fmt.Errorf("read a deployment: %s: %w: remove it, and the configuration alone says whether the service is bound", file, err)
	}
	return d, nil
}

// withDeployed approves the services whose trials on this host showed a gain. A file that cannot be
// read approves nothing.
func (c Config) withDeployed() Config {
	all, err := Deployments(c.Deployments)
	if err != nil {
		c.Unread = strings.Split(err.Error(), "\n")
	}
	c.Services = slices.Clone(c.Services)
	for i, s := range c.Services {
		if !s.Approved && slices.ContainsFunc(all, func(d profiling.Deployment) bool { return d.Service == s.Name && d.Phase == profiling.Kept }) {
			c.Services[i].Approved, c.Services[i].Deployed = true, true
		}
	}
	return c
}

// ExcludedNow are the names of the workloads that a running agent was asked to leave alone.
func ExcludedNow(stateDir string, now time.Time) (names []string) {
	s, err := ReadStatus(stateDir)
	if err != nil || !alive(s.PID) { // no agent runs, and an exclusion ends with its agent
		return nil
	}
	for _, x := range s.Excluded {
		if now.Before(x.Until) {
			names = append(names, x.Workload)
		}
	}
	return names
}

// NearOf are the devices that a workload's service should be close to.
func (c Config) NearOf(id string) []string {
	s, _ := c.rule(id)
	return s.Near
}

// Replicas are the workloads among these that are a service's, and those of them that may never be
// bound.
func (c Config) Replicas(service string, ids []string) (all, excluded []string) {
	for _, id := range ids {
		if s, ok := c.rule(id); ok && s.Name == service {
			all = append(all, id)
			if may, _ := c.ordered(nil, id, service, true, s.Target); !may {
				excluded = append(excluded, id)
			}
		}
	}
	return all, excluded
}
