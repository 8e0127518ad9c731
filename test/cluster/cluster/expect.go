package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

const visibleCores = "NEURON_RT_VISIBLE_CORES"

// ExpectGiven compares what a container found with what PodResources says it holds: as many as asked for, exactly the device
// nodes of that silicon and of those interfaces, all of which open, and the variable that names the cores, counted from 0 over
// the devices in the container. coresPerDevice counts the node's logical cores.
func (r Report) ExpectGiven(t testing.TB, ask Ask, coresPerDevice int) {
	t.Helper()
	for _, name := range []core.ResourceName{NeuronCore, Neuron, EFA} {
		if want := ask[name]; strconv.Itoa(len(r.Held[name])) != want && (want != "" || len(r.Held[name]) > 0) {
			t.Errorf("%s/%s holds %s %v, asked for %q", r.Pod, r.Container, name, r.Held[name], want)
		}
	}
	cores, err := r.cores(coresPerDevice)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, device := range devicesOf(cores, coresPerDevice) {
		nodes = append(nodes, fmt.Sprintf("/dev/neuron%d", device))
	}
	for _, name := range r.Held[EFA] {
		verbs, err := r.Node.verbsNode(name)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, "/dev/infiniband/"+verbs)
	}
	slices.Sort(nodes)
	if !slices.Equal(r.Open, nodes) || len(r.Refused) != 0 {
		t.Errorf("%s/%s: device nodes open %v, refused %v; holds %v, so want %v", r.Pod, r.Container, r.Open, r.Refused, r.Held, nodes)
	}
	value, present := r.Env[visibleCores]
	if want := visible(cores, coresPerDevice); value != want || present != (len(cores) > 0) {
		t.Errorf("%s/%s: %s=%q (set: %v), want %q for cores %v", r.Pod, r.Container, visibleCores, value, present, want, cores)
	}
}

// cores lists the cores behind both Neuron resources, ascending, each once.
func (r Report) cores(perDevice int) ([]int, error) {
	set := map[int]bool{}
	for _, id := range r.Held[NeuronCore] {
		core, err := strconv.Atoi(id)
		if err != nil {
			return nil, err
		}
		set[core] = true
	}
	for _, id := range r.Held[Neuron] {
		device, err := strconv.Atoi(id)
		if err != nil {
			return nil, err
		}
		for i := range perDevice {
			set[device*perDevice+i] = true
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func devicesOf(cores []int, perDevice int) []int {
	var devices []int
	for _, core := range cores {
		if device := core / perDevice; !slices.Contains(devices, device) {
			devices = append(devices, device)
		}
	}
	return devices
}

// visible numbers the cores over the devices present and writes them as ranges: "0-3,6".
func visible(cores []int, perDevice int) string {
	devices := devicesOf(cores, perDevice)
	local := func(k int) int {
		return slices.Index(devices, cores[k]/perDevice)*perDevice + cores[k]%perDevice
	}
	var ranges []string
	for i := 0; i < len(cores); {
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

// verbsNode maps an RDMA device to its verbs node by the simulated host's sysfs.
func (n *Node) verbsNode(rdma string) (string, error) {
	files, _ := filepath.Glob(filepath.Join(n.Host(), "sys/class/infiniband_verbs/uverbs*/ibdev"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.TrimSpace(string(text)) == rdma {
			return filepath.Base(filepath.Dir(file)), nil
		}
	}
	return "", fmt.Errorf("no verbs node for %q below %s", rdma, n.Host())
}
