package kubelettest

import (
	"fmt"
	"testing"
)

// Scenario f: devices and interfaces together. The kubelet asks for the resources of a container in random
// order and never says for whom. Pods fill the node in bursts: each one must get the nearest interfaces.
func TestTogether(t *testing.T) {
	for i, asks := range [][]struct {
		name string
		ask  ask
		fit  int // so many fill the node
		// So many of 12 to 16 may miss. The goal is none, and none is what is seen; but an interface that is asked for
		// first is chosen for the size that such containers had so far, and the first one of its kind is a guess.
		miss int
	}{
		{ // trn1.32xlarge: two devices share an interface
			{"pair", ask{neuron: "2", efa: "1"}, 8, 1},
			{"group", ask{neuron: "4", efa: "2"}, 4, 1},
			{"cores", ask{neuronCore: "8", efa: "1"}, 4, 2},
		},
		{ // trn2.48xlarge: one interface for each device
			{"pair", ask{neuron: "2", efa: "2"}, 8, 1},
			{"group", ask{neuron: "4", efa: "4"}, 4, 1},
			{"cores", ask{neuronCore: "8", efa: "1"}, 8, 2},
		},
	} {
		m := machines[i]
		t.Run(m.instanceType, func(t *testing.T) {
			n := startNodeWith(t, m.instanceType, nodeSetup{agent: []string{"--pod-resources-interval", "500ms"}})
			for _, c := range asks {
				t.Run(c.name, func(t *testing.T) {
					n.expectAllocatable(t, patience, m.whole)
					n.expectNearest(t, m, c.name, c.ask, c.fit, 12, c.miss)
				})
			}
		})
	}
}

// expectNearest starts at least `total` equal pods, as many at a time as fit on the node.
func (n *node) expectNearest(t *testing.T, m machine, name string, a ask, fit, total, mayMiss int) {
	t.Helper()
	aligned, started := 0, 0
	for round := 0; started < total; round++ {
		var pods []podSpec
		for i := range fit {
			pods = append(pods, onePod(fmt.Sprintf("%s-%d-%d", name, round, i), a))
			n.submit(t, pods[i])
		}
		for _, s := range pods {
			found, h := n.awaitReports(t, s)["main"], holdings(t, s.name)["main"]
			n.expectGiven(t, found, h, m.coresPerDevice)
			near, given := m.nearestOf(t, h), n.pciOf(t, h[efa])
			started++
			if isAligned(near, given) {
				aligned++
			} else {
				t.Logf("%s got interfaces %v, nearest to its %v and %v are %v", s.name, given, h[neuron], h[neuronCore], near)
			}
		}
		n.removeAll(t, pods)
	}
	t.Logf("FIGURE %s %s: nearest interfaces in %d of %d pods", m.instanceType, name, aligned, started)
	if started-aligned > mayMiss {
		t.Errorf("%d of %d pods missed their nearest interfaces, at most %d may", started-aligned, started, mayMiss)
	}
}
