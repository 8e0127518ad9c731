package kubelettest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// policies of the kubelet's Topology Manager.
var policies = []string{"none", "best-effort", "restricted", "single-numa-node"}

// placement is one pod on an otherwise empty node.
type placement struct {
	ask     ask
	tooWide bool // more than one NUMA node has: single-numa-node refuses it
}

// Scenario h: what each Topology Manager policy does to pods on nodes with several NUMA nodes. On types but the first, policies that
// refuse nothing are tried with KUBELET_DEEP=1 only.
func TestTopologyPolicies(t *testing.T) {
	for i, c := range []struct {
		instanceType string
		pods         []placement
		fill         int // devices of each pod when the node is filled with equal pods
		whole        counts
	}{
		{"trn1.32xlarge", []placement{{ask{neuron: "1"}, false}, {ask{neuron: "2", efa: "1"}, false},
			{ask{neuron: "4", efa: "2"}, false}, {ask{neuron: "8"}, false}, {ask{neuron: "16", efa: "8"}, true},
			{ask{neuronCore: "3"}, false}, {ask{neuronCore: "18"}, true}}, 4, counts{32, 16, 8}},
		{"trn2.48xlarge", []placement{{ask{neuron: "1"}, false}, {ask{neuron: "2", efa: "2"}, false},
			{ask{neuron: "4", efa: "4"}, false}, {ask{neuron: "8"}, false}, {ask{neuron: "16", efa: "16"}, true},
			{ask{neuronCore: "3"}, false}, {ask{neuronCore: "36"}, true}}, 4, counts{64, 16, 16}},
		{"inf2.48xlarge", []placement{{ask{neuron: "1"}, false}, {ask{neuron: "2"}, false}, {ask{neuron: "3"}, false},
			{ask{neuron: "6"}, true}, {ask{neuron: "12"}, true}}, 2, counts{24, 12, 0}},
	} {
		t.Run(c.instanceType, func(t *testing.T) {
			for _, policy := range policies {
				t.Run(policy, func(t *testing.T) {
					if refuses := policy == "restricted" || policy == "single-numa-node"; i > 0 && !refuses && os.Getenv("KUBELET_DEEP") != "1" {
						t.Skip("KUBELET_DEEP=1 runs it")
					}
					n := startNodeWith(t, c.instanceType, nodeSetup{policy: policy, agent: []string{"--pod-resources-interval", "500ms"}})
					n.expectAllocatable(t, patience, c.whole)
					for i, p := range c.pods {
						n.expectPlaced(t, onePod(fmt.Sprintf("alone-%d", i), p.ask), p.tooWide && policy == "single-numa-node")
						n.expectAllocatable(t, patience, c.whole)
					}
					n.fillWith(t, c.fill, c.whole.devices/c.fill)
				})
			}
		})
	}
}

// expectPlaced starts one pod and says where it came to lie, or that the kubelet refused it.
func (n *node) expectPlaced(t *testing.T, s podSpec, refused bool) {
	t.Helper()
	if refused {
		if message := n.expectRefused(t, s); !strings.HasPrefix(message, "TopologyAffinityError") {
			t.Errorf("refused for another reason than NUMA: %s", message)
		}
		n.figure(t, s, "refused")
	} else {
		n.expectRunning(t, s)
		n.figure(t, s, n.place(t, s))
	}
	n.remove(t, s)
}

func (n *node) figure(t *testing.T, s podSpec, place string) {
	t.Helper()
	var asked []string
	for _, resource := range []core.ResourceName{neuron, neuronCore, efa} {
		if quantity, present := s.containers[0].ask[resource]; present {
			asked = append(asked, quantity+" "+string(resource[strings.IndexByte(string(resource), '/')+1:]))
		}
	}
	t.Logf("FIGURE %s: %s: %s", n.setup.policy, strings.Join(asked, " + "), place)
}

// place describes what a pod holds: "[0 1 2 3] on NUMA [0 1], EFA on NUMA [0]".
func (n *node) place(t *testing.T, s podSpec) string {
	t.Helper()
	h := holdings(t, s.name)["main"]
	var parts []string
	for _, resource := range []core.ResourceName{neuron, neuronCore, efa} {
		if len(h[resource]) == 0 {
			continue
		}
		numa, nodes := numaOf(t, string(resource)), map[int]bool{}
		for _, id := range h[resource] {
			nodes[numa[id]] = true
		}
		what := fmt.Sprint(h[resource])
		if resource == efa {
			what = "EFA"
		}
		parts = append(parts, fmt.Sprintf("%s on NUMA %v", what, slices.Sorted(maps.Keys(nodes))))
	}
	return strings.Join(parts, ", ")
}

// fillWith fills the node with equal pods, one after the other: every policy but none may refuse some.
func (n *node) fillWith(t *testing.T, devices, pods int) {
	t.Helper()
	for i := range pods {
		s := onePod(fmt.Sprintf("fill-%d", i), ask{neuron: fmt.Sprint(devices)})
		n.submit(t, s)
		place := "refused"
		if n.awaitStart(t, s) == "" {
			place = n.place(t, s)
			n.expectGroup(t, holdings(t, s.name)["main"][neuron])
		} else if n.setup.policy == "none" || n.setup.policy == "best-effort" {
			t.Errorf("%s was refused, though the devices are there", s.name)
		}
		t.Logf("FIGURE %s: filling with %d, pod %d: %s", n.setup.policy, devices, i+1, place)
	}
}

// expectGroup: devices of a torus filled with equal pods are an official group, except where the kubelet allows
// one NUMA node only and groups span two.
func (n *node) expectGroup(t *testing.T, ids []string) {
	t.Helper()
	if !strings.HasPrefix(n.instanceType, "trn") || (n.setup.policy != "none" && n.instanceType == "trn1.32xlarge") {
		return
	}
	for i, id := range ids {
		first := number(t, ids[0])
		if first%len(ids) != 0 || number(t, id) != first+i {
			t.Errorf("%s, %s: %v is not an aligned group", n.instanceType, n.setup.policy, ids)
			return
		}
	}
}
