package kubelettest

import (
	"testing"
	"time"
)

// Scenario a: what each kind of node offers, counted by the kubelet.
func TestAllocatable(t *testing.T) {
	for _, c := range []struct {
		name, instanceType string
		options            []string
		want               counts
	}{
		{"trn2", "trn2.48xlarge", nil, counts{64, 16, 16}},
		{"trn2 lnc1", "trn2.48xlarge", []string{"--lnc", "1"}, counts{128, 16, 16}},
		{"inf2", "inf2.48xlarge", nil, counts{24, 12, 0}},
		{"inf1", "inf1.6xlarge", nil, counts{16, 4, 0}},
	} { // trn1.32xlarge: TestTrn1; a node with EFA only: TestEfaOnlyPod
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, c.instanceType, c.options...)
			begin := time.Now()
			n.expectAllocatable(t, patience, c.want)
			since(t, "node start to all resources", begin)
			perDevice := c.want.cores / c.want.devices
			s := onePod("one-device", ask{neuron: "1"})
			found, h := n.expectRunning(t, s)["main"], holdings(t, s.name)["main"]
			expectHeld(t, h, 0, 1, 0)
			n.expectGiven(t, found, h, perDevice)
		})
	}
}

// A GPU node's pod gets its interfaces and nothing of Neuron.
func TestEfaOnlyPod(t *testing.T) {
	n := startNode(t, "p5.48xlarge")
	n.expectAllocatable(t, patience, counts{0, 0, 32})
	s := onePod("nccl", ask{efa: "32"})
	found, h := n.expectRunning(t, s)["main"], holdings(t, s.name)["main"]
	expectHeld(t, h, 0, 0, 32)
	n.expectGiven(t, found, h, 1)
}
