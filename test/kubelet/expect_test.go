package kubelettest

import (
	"strconv"
	"strings"
	"testing"

	"neuron-agent.test/suite"
	"neuron-agent.test/suite/cores"
)

const visibleCores = cores.Variable

// expectGiven compares what a container found with what PodResources says it holds. coresPerDevice is that of the node.
func (n *node) expectGiven(t *testing.T, found report, h held, coresPerDevice int) {
	t.Helper()
	if err := found.CheckGiven(h, coresPerDevice, suite.VerbsNodes(n.root)); err != nil {
		t.Error(err)
	}
}

// expectNothing: a container without devices sees none and no variable of ours.
func expectNothing(t *testing.T, found report) {
	t.Helper()
	if len(found.Open)+len(found.Refused) != 0 {
		t.Errorf("device nodes in a container that asked for none: %v %v", found.Open, found.Refused)
	}
	for key := range found.Env {
		if strings.HasPrefix(key, "NEURON_") || strings.HasPrefix(key, "FI_") {
			t.Errorf("variable %s in a container that asked for no device", key)
		}
	}
}

// coresOf lists the cores behind both Neuron resources, ascending, each once.
func coresOf(t *testing.T, h held, coresPerDevice int) []int {
	t.Helper()
	list, err := h.CoresOf(coresPerDevice)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func number(t *testing.T, id string) int {
	t.Helper()
	value, err := strconv.Atoi(id)
	if err != nil || strconv.Itoa(value) != id {
		t.Fatalf("id %q is not a plain decimal number", id)
	}
	return value
}

// expectHeld checks how many devices of each resource a container holds.
func expectHeld(t *testing.T, h held, cores, devices, efas int) {
	t.Helper()
	want := counts{cores, devices, efas}
	if now := countsOf(h); now != want {
		t.Errorf("PodResources: cores/devices/EFAs %v, want %v", now, want)
	}
}
