package kubelettest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// Scenario d: a failing device leaves, pods that need it are refused with a reason, healed it returns.
func TestHealth(t *testing.T) {
	n := startNode(t, "trn1.32xlarge")
	n.expectAllocatable(t, patience, trn1Whole)
	for _, c := range []struct {
		name   string
		inject []string
		word   string // must be in the agent's log line about neuron3
	}{
		{"ecc", []string{"sram_ecc_uncorrected=1"}, "ecc"},
		{"vanished", []string{"vanish"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) { n.expectFailureAndReturn(t, c.name, c.inject, c.word) })
	}
	t.Run("running pod stays", func(t *testing.T) { n.expectRunningPodStays(t) })
}

func (n *node) expectFailureAndReturn(t *testing.T, name string, change []string, word string) {
	t.Helper()
	n.expectAllocatable(t, patience, trn1Whole)
	begin := time.Now()
	n.inject(t, "neuron3", change...)
	now := n.expectAllocatable(t, withinASecond, counts{cores: 30, devices: 15, efas: 8})
	since(t, "fault to unhealthy in the kubelet", begin)
	if slices.Contains(now[neuron], "3") || slices.Contains(now[neuronCore], "6") || slices.Contains(now[neuronCore], "7") {
		t.Errorf("device 3 or its cores still offered: %v", now)
	}
	all := onePod("needs-all-"+name, ask{neuron: "16"})
	message := n.expectRefused(t, all)
	if !strings.Contains(message, "Requested: 16, Available: 15") || !strings.Contains(message, neuron) {
		t.Errorf("the refusal does not say what is missing: %q", message)
	}
	if err := n.agentSaid("neuron3", word); err != nil {
		t.Error(err)
	}
	n.remove(t, all)
	n.inject(t, "neuron3", "heal")
	begin = time.Now()
	n.expectAllocatable(t, withinASecond, trn1Whole)
	since(t, "healed to healthy in the kubelet", begin)
	again := onePod("all-again-"+name, ask{neuron: "16"})
	found, h := n.expectRunning(t, again)["main"], holdings(t, again.name)["main"]
	expectHeld(t, h, 0, 16, 0)
	n.expectGiven(t, found, h, trn1CoresPerDevice)
	n.remove(t, again)
}

// A pod that runs on a failing device is not touched; the kubelet shows the device as unhealthy.
func (n *node) expectRunningPodStays(t *testing.T) {
	t.Helper()
	n.expectAllocatable(t, patience, trn1Whole)
	s := onePod("training", ask{neuron: "16"})
	n.expectRunning(t, s)
	before := n.containerIDs(t, s.name)
	n.inject(t, "neuron3", "sram_ecc_uncorrected=1")
	eventually(t, patience, "pod status shows device 3 unhealthy", func() error {
		pod, err := n.status(s.name)
		if err != nil || pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			return fmt.Errorf("no status (%v)", err)
		}
		for _, status := range pod.Status.ContainerStatuses[0].AllocatedResourcesStatus {
			for _, device := range status.Resources {
				if status.Name == neuron && device.ResourceID == "3" && device.Health == core.ResourceHealthStatusUnhealthy {
					return nil
				}
			}
		}
		return fmt.Errorf("%v", pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
	})
	if after := n.containerIDs(t, s.name); !maps.Equal(before, after) {
		t.Errorf("containers before %v, after %v", before, after)
	}
	n.inject(t, "neuron3", "heal")
}

// agentSaid looks for one log line of the agent with all of the words.
func (n *node) agentSaid(words ...string) error {
	for _, line := range strings.Split(n.agent.Output(), "\n") {
		missing := func(word string) bool { return !strings.Contains(strings.ToLower(line), word) }
		if !slices.ContainsFunc(words, missing) {
			return nil
		}
	}
	return fmt.Errorf("no log line of the agent with %q:\n%s", words, n.agent.Tail())
}
