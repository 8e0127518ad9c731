package suite

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/suite/cores"
)

// CheckGiven compares what a container found with what PodResources says it holds: exactly the device nodes of that silicon and
// of those interfaces, all of which open, and the variable that names the cores, counted from 0 over the devices in the
// container. verbs is that of the node, coresPerDevice counts its logical cores.
func (r Report) CheckGiven(held Held, coresPerDevice int, verbs map[string]string) error {
	list, err := held.CoresOf(coresPerDevice)
	if err != nil {
		return err
	}
	var nodes []string
	for _, device := range cores.Devices(list, coresPerDevice) {
		nodes = append(nodes, fmt.Sprintf("/dev/neuron%d", device))
	}
	for _, name := range held[EFA] {
		if verbs[name] == "" {
			return fmt.Errorf("the host has no verbs node for %q", name)
		}
		nodes = append(nodes, "/dev/infiniband/"+verbs[name])
	}
	slices.Sort(nodes)
	if !slices.Equal(r.Open, nodes) || len(r.Refused) != 0 {
		err = fmt.Errorf("device nodes open %v, refused %v; holds %v, so want %v", r.Open, r.Refused, held, nodes)
	}
	value, present := r.Env[cores.Variable]
	if want := cores.Visible(list, coresPerDevice); value != want || present != (len(list) > 0) {
		err = errors.Join(err, fmt.Errorf("%s=%q (set: %v), want %q for cores %v", cores.Variable, value, present, want, list))
	}
	return err
}

// CoresOf lists the cores behind both Neuron resources, ascending, each once.
func (h Held) CoresOf(perDevice int) ([]int, error) {
	set := map[int]bool{}
	for name, each := range map[core.ResourceName]int{NeuronCore: 1, Neuron: perDevice} {
		for _, id := range h[name] {
			number, err := strconv.Atoi(id)
			if err != nil || strconv.Itoa(number) != id {
				return nil, fmt.Errorf("id %q of %s is not a plain decimal number", id, name)
			}
			for i := range each {
				set[number*each+i] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

// VerbsNodes maps RDMA devices to their nodes below /dev/infiniband by the sysfs of a host: rdmap16s25 to uverbs0.
func VerbsNodes(host string) map[string]string {
	all := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(host, "sys/class/infiniband_verbs/uverbs*/ibdev"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			all[strings.TrimSpace(string(text))] = filepath.Base(filepath.Dir(file))
		}
	}
	return all
}
