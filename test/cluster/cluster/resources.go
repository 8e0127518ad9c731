package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/suite"
)

// Resource names.
const (
	NeuronCore core.ResourceName = suite.NeuronCore
	Neuron     core.ResourceName = suite.Neuron
	EFA        core.ResourceName = suite.EFA
)

// Counts is what a node can hand out; 0 means that the resource is absent or empty.
type Counts struct{ Cores, Devices, EFAs int64 }

// Allocatable returns what the API server says of the node.
func (n *Node) Allocatable() (Counts, error) {
	node, err := n.cluster.Client.CoreV1().Nodes().Get(context.Background(), n.Name, meta.GetOptions{})
	if err != nil {
		return Counts{}, err
	}
	count := func(name core.ResourceName) int64 {
		quantity := node.Status.Allocatable[name]
		return quantity.Value()
	}
	return Counts{count(NeuronCore), count(Neuron), count(EFA)}, nil
}

// ExpectAllocatable waits until the API server says exactly this of the node, and not of what an earlier agent offered: the kubelet says
// it too.
func (n *Node) ExpectAllocatable(t testing.TB, want Counts) {
	t.Helper()
	Eventually(t, Patience, fmt.Sprintf("%s: allocatable %+v", n.Name, want), func() error {
		if err := n.Running(); err != nil {
			return suite.Permanent(err)
		}
		now, err := n.Allocatable()
		if err != nil || now != want {
			return errors.Join(err, fmt.Errorf("it is %+v", now))
		}
		if now, err = n.KubeletAllocatable(); err != nil || now != want {
			return errors.Join(err, fmt.Errorf("it is, but the kubelet offers %+v", now))
		}
		return nil
	})
}

// Held maps a resource to the sorted ids of one container, or of the whole node.
type Held = suite.Held

// CountsOf is how much is held.
func CountsOf(h Held) Counts {
	return Counts{int64(len(h[NeuronCore])), int64(len(h[Neuron])), int64(len(h[EFA]))}
}

// Holdings asks the kubelet's PodResources service what all containers of the node hold, as "namespace/pod/container".
func (n *Node) Holdings() (map[string]Held, error) {
	kubelet, err := n.Observe()
	if err != nil {
		return nil, err
	}
	defer kubelet.Close()
	return kubelet.Holdings()
}
