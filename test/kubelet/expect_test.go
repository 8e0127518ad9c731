package kubelettest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const visibleCores = "NEURON_RT_VISIBLE_CORES"

// expectGiven compares what a container found with what PodResources says it holds: exactly the device
// nodes of that silicon and of those interfaces, all of which open, and the variable that names the
// cores, counted from 0 over the devices in the container. coresPerDevice is that of the node.
func (n *node) expectGiven(t *testing.T, found report, h held, coresPerDevice int) {
	t.Helper()
	cores := coresOf(t, h, coresPerDevice)
	var nodes []string
	for _, device := range devicesOf(cores, coresPerDevice) {
		nodes = append(nodes, fmt.Sprintf("/dev/neuron%d", device))
	}
	for _, name := range h[efa] {
		nodes = append(nodes, "/dev/infiniband/"+n.verbsNode(t, name))
	}
	slices.Sort(nodes)
	if !slices.Equal(found.open, nodes) || len(found.refused) != 0 {
		t.Errorf("device nodes: open %v, refused %v; holds %v, so want %v", found.open, found.refused, h, nodes)
	}
	value, present := found.env[visibleCores]
	if want := visible(cores, coresPerDevice); value != want || present != (len(cores) > 0) {
		t.Errorf("%s=%q (set: %v), want %q for cores %v", visibleCores, value, present, want, cores)
	}
}

// expectNothing: a container without devices sees none and no variable of ours.
func expectNothing(t *testing.T, found report) {
	t.Helper()
	if len(found.open)+len(found.refused) != 0 {
		t.Errorf("device nodes in a container that asked for none: %v %v", found.open, found.refused)
	}
	for key := range found.env {
		if strings.HasPrefix(key, "NEURON_") || strings.HasPrefix(key, "FI_") {
			t.Errorf("variable %s in a container that asked for no device", key)
		}
	}
}

// coresOf lists the cores behind both Neuron resources, ascending, each once.
func coresOf(t *testing.T, h held, coresPerDevice int) []int {
	t.Helper()
	set := map[int]bool{}
	for _, id := range h[neuronCore] {
		set[number(t, id)] = true
	}
	for _, id := range h[neuron] {
		for i := range coresPerDevice {
			set[number(t, id)*coresPerDevice+i] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func devicesOf(cores []int, coresPerDevice int) []int {
	var devices []int
	for _, core := range cores {
		if device := core / coresPerDevice; !slices.Contains(devices, device) {
			devices = append(devices, device)
		}
	}
	return devices
}

// visible numbers the cores over the devices present and writes them as ranges: "0-3,6".
func visible(cores []int, coresPerDevice int) string {
	devices := devicesOf(cores, coresPerDevice)
	var ranges []string
	for i := 0; i < len(cores); {
		local := func(k int) int {
			return slices.Index(devices, cores[k]/coresPerDevice)*coresPerDevice + cores[k]%coresPerDevice
		}
		last := i
		for last+1 < len(cores) && local(last+1) == local(last)+1 {
			last++
		}
		text := strconv.Itoa(local(i))
		if last > i {
			text += "-" + strconv.Itoa(local(last))
		}
		ranges = append(ranges, text)
		i = last + 1
	}
	return strings.Join(ranges, ",")
}

func number(t *testing.T, id string) int {
	t.Helper()
	value, err := strconv.Atoi(id)
	if err != nil || strconv.Itoa(value) != id {
		t.Fatalf("id %q is not a plain decimal number", id)
	}
	return value
}

// verbsNode maps an RDMA device to its verbs node by the simulated host's sysfs.
func (n *node) verbsNode(t *testing.T, rdma string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(n.root, "sys/class/infiniband_verbs/uverbs*/ibdev"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.TrimSpace(string(text)) == rdma {
			return filepath.Base(filepath.Dir(file))
		}
	}
	t.Fatalf("no verbs node for %q below %s", rdma, n.root)
	return ""
}

// expectHeld checks how many devices of each resource a container holds.
func expectHeld(t *testing.T, h held, cores, devices, efas int) {
	t.Helper()
	want := counts{cores, devices, efas}
	if now := (counts{h.count(neuronCore), h.count(neuron), h.count(efa)}); now != want {
		t.Errorf("PodResources: cores/devices/EFAs %v, want %v", now, want)
	}
}

func TestVisibleCountsFromZero(t *testing.T) {
	for _, c := range []struct {
		cores []int
		want  string
	}{{[]int{4, 5, 6, 7}, "0-3"}, {[]int{5}, "1"}, {[]int{2, 3, 9}, "0-1,3"}, {nil, ""}} {
		if got := visible(c.cores, 2); got != c.want {
			t.Errorf("visible(%v) = %q, want %q", c.cores, got, c.want)
		}
	}
}
