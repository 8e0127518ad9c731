package kubelettest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const numaDirectory = "/sys/devices/system/node"

// showNuma covers the kernel's NUMA nodes with those of the simulated host, for every process of our mount
// namespace. The kubelet's Topology Manager knows NUMA only from there. The machine's own CPUs are dealt
// out over the nodes, since the kubelet counts its CPUs by them; copy is a directory to be made.
func (n *node) showNuma(t *testing.T, copy string) {
	t.Helper()
	if _, err := os.Stat(numaDirectory); err != nil {
		t.Skipf("this kernel shows no NUMA nodes to cover: %v", err)
	}
	if err := os.CopyFS(copy, os.DirFS(n.root+numaDirectory)); err != nil {
		t.Fatal(err)
	}
	nodes, _ := filepath.Glob(filepath.Join(copy, "node[0-9]*"))
	cpus, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	if len(nodes) == 0 {
		t.Fatalf("no NUMA node below %s", n.root)
	}
	for i, cpu := range cpus {
		if err := os.Symlink(cpu, filepath.Join(nodes[i%len(nodes)], filepath.Base(cpu))); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount(copy, numaDirectory, "", syscall.MS_BIND, ""); err != nil {
		t.Fatalf("cover %s: %v", numaDirectory, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(numaDirectory, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// numaOf maps every id of a resource to its NUMA node as the kubelet was told; -1 where it was told none.
func numaOf(t *testing.T, resource string) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := podResources(t).GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	numa := map[string]int{}
	for _, device := range answer.Devices {
		if device.ResourceName != resource {
			continue
		}
		place := -1
		if nodes := device.Topology.GetNodes(); len(nodes) > 0 {
			place = int(nodes[0].ID)
		}
		for _, id := range device.DeviceIds {
			numa[id] = place
		}
	}
	if len(numa) == 0 {
		t.Fatal(fmt.Errorf("nothing allocatable of %s", resource))
	}
	return numa
}
