package kubelettest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Scenario j: a node that offers some devices only as cores and the others only whole. Both of the scheduler's
// counts are exact, faults leave the count of one name only, and another split waits for those who hold.
func TestSplitNode(t *testing.T) {
	n := startNodeWith(t, "trn1.32xlarge", nodeSetup{agent: []string{"--core-devices", "0-3"}})
	split := counts{cores: 8, devices: 12, efas: 8}
	n.expectAllocatable(t, patience, split)
	whole, cores := onePod("training", ask{neuron: "8", efa: "4"}), onePod("cores", ask{neuronCore: "3"})
	for _, s := range []podSpec{whole, cores} {
		for _, found := range n.expectRunning(t, s) {
			n.expectGiven(t, found, holdings(t, s.name)["main"], 2)
		}
	}
	for _, id := range holdings(t, whole.name)["main"][neuron] {
		if number(t, id) < 4 {
			t.Errorf("neuron%s is offered only as cores, and was given whole", id)
		}
	}
	for _, id := range holdings(t, "cores")["main"][neuronCore] {
		if number(t, id) >= 8 {
			t.Errorf("core %s is of a device that is offered only whole", id)
		}
	}
	n.expectAllocatable(t, patience, split) // nothing is withheld across

	t.Run("both names in one container", func(t *testing.T) {
		s := onePod("both", ask{neuron: "1", neuronCore: "2"})
		message := n.expectRefused(t, s)
		t.Logf("the pod's status: %s", message)
		if !strings.Contains(message, "offers no device under both names") {
			t.Errorf("refused without saying why: %s", message)
		}
		n.remove(t, s)
	})
	t.Run("faults", func(t *testing.T) { testSplitFaults(t, n, split) })
	t.Run("another split while pods hold", func(t *testing.T) { testOtherSplit(t, n, whole, cores) })
}

// A device of each class fails and heals; its name alone counts one device less.
func testSplitFaults(t *testing.T, n *node, split counts) {
	for _, c := range []struct {
		device string
		left   counts
	}{{"neuron3", counts{split.cores - 2, split.devices, split.efas}}, {"neuron15", counts{split.cores, split.devices - 1, split.efas}}} {
		n.inject(t, c.device, "sram_ecc_uncorrected=1")
		n.expectAllocatable(t, patience, c.left)
		n.inject(t, c.device, "heal")
		n.expectAllocatable(t, patience, split)
	}
}

// Devices 0 to 3 become whole ones, 12 to 15 cores, under running pods; kubelet and agent are killed meanwhile.
func testOtherSplit(t *testing.T, n *node, whole, cores podSpec) {
	pods := []podSpec{whole, cores}
	before := n.observe(t, pods)
	n.killAgent(t)
	n.setup.agent = []string{"--core-devices", "12-15"}
	n.startAgent(t)
	heldWhole, heldCores := before.devices[whole.name]["main"][neuron], before.devices[cores.name]["main"][neuronCore]
	now := splitAllocatable(t, heldWhole, heldCores)
	n.expectAllocatable(t, patience, now)
	n.killKubelet(t)
	n.startKubelet(t)
	n.awaitKubelet(t)
	n.expectAllocatable(t, patience, now)
	eventually(t, patience, "the same pods run with the same devices", func() error {
		return differ(before, n.observe(t, pods))
	})
	n.remove(t, whole)
	n.expectAllocatable(t, patience, splitAllocatable(t, nil, heldCores))
	n.remove(t, cores)
	n.expectAllocatable(t, patience, counts{cores: 8, devices: 12, efas: 8})
	last := []podSpec{onePod("last-whole", ask{neuron: "12"}), onePod("last-cores", ask{neuronCore: "8"})}
	for _, s := range last {
		n.expectRunning(t, s)
	}
	if ids := holdings(t, "last-cores")["main"][neuronCore]; slices.Contains(ids, "0") || !slices.Contains(ids, "24") {
		t.Errorf("cores of the new split: %v", ids)
	}
	n.removeAll(t, last)
}

// splitAllocatable is what a node with --core-devices 12-15 offers while devices and cores are held: its own units
// but those in use under the other name, and the units of the other class for as long as they are held.
func splitAllocatable(t *testing.T, devices, cores []string) counts {
	t.Helper()
	now := counts{cores: 8, devices: 12, efas: 8}
	busy := map[string]bool{}
	for _, id := range cores {
		if device := number(t, id) / 2; device < 12 {
			now.cores++
			busy[fmt.Sprint(device)] = true
		}
	}
	for _, id := range devices {
		if number(t, id) >= 12 {
			now.devices++
			now.cores -= 2
		}
	}
	now.devices -= len(busy)
	return now
}
