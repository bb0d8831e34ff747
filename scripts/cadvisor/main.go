// SPDX-License-Identifier: Apache-2.0

// The peer in scripts/bench-observe.sh: cAdvisor as its own command starts it
// (cmd/cadvisor.go, which the Go module proxy does not serve), without its HTTP server,
// its storage drivers and its Prometheus collector. Nothing here queries it, so it
// costs less than the whole command, never more.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/google/cadvisor/lib/container/containerd/install"
	_ "github.com/google/cadvisor/lib/container/crio/install"
	_ "github.com/google/cadvisor/lib/container/systemd/install"
	_ "github.com/google/cadvisor/lib/fs/btrfs/install"
	_ "github.com/google/cadvisor/lib/fs/nfs/install"
	_ "github.com/google/cadvisor/lib/fs/overlay/install"
	_ "github.com/google/cadvisor/lib/fs/tmpfs/install"
	_ "github.com/google/cadvisor/lib/fs/vfs/install"
	_ "github.com/google/cadvisor/lib/fs/zfs/install"

	"github.com/google/cadvisor/lib/cache/memory"
	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/manager"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"

	"k8s.io/klog/v2"
)

// ignored is what cAdvisor does not read by default.
var ignored = container.MetricSet{
	container.MemoryNumaMetrics: {}, container.NetworkTcpUsageMetrics: {}, container.NetworkUdpUsageMetrics: {},
	container.NetworkAdvancedTcpUsageMetrics: {}, container.ProcessSchedulerMetrics: {}, container.ProcessMetrics: {},
	container.HugetlbUsageMetrics: {}, container.ReferencedMemoryMetrics: {}, container.CPUTopologyMetrics: {},
	container.ResctrlMetrics: {}, container.CPUSetMetrics: {},
}

func main() {
	enabled := container.MetricSet{}
	flag.Var(&enabled, "enable_metrics", "metrics instead of the default ones")
	whitelist := flag.String("raw_cgroup_prefix_whitelist", "", "cgroups to watch with --docker_only")
	klog.InitFlags(nil)
	flag.Parse()
	if len(enabled) == 0 {
		enabled = container.AllMetrics.Difference(ignored)
	}
	m, err := manager.New(memory.New(2*time.Minute, nil), sysfs.NewRealSysFs(), manager.HousekeepingConfigFlags, enabled,
		strings.Split(*whitelist, ","), nil, "", 0)
	if err == nil {
		err = m.Start()
	}
	if err != nil {
		klog.Fatal(err)
	}
	end := make(chan os.Signal, 2)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1)
	for s := range end {
		if s != syscall.SIGUSR1 {
			os.Exit(0)
		}
		tell(m)
	}
}

// tell prints how many containers have statistics, and from how many readings, to show
// that none was skipped.
func tell(m manager.Manager) {
	all, err := m.SubcontainersInfo("/", &model.ContainerInfoRequest{NumStats: -1})
	if err != nil {
		klog.Error(err)
	}
	var last *model.ContainerStats
	containers, readings := 0, 0
	for _, c := range all {
		if c.Name == "/" || len(c.Stats) == 0 {
			continue
		}
		containers++
		readings += len(c.Stats)
		last = c.Stats[len(c.Stats)-1]
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"containers": containers, "readings": readings, "example": last})
}
